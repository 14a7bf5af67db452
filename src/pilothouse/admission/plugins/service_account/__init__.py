"""ServiceAccount: every pod runs as an account of its namespace, and gets that account's token and pull secrets.

The default account of a young namespace is made by a controller a moment later, so a pod that needs it waits a little.
Mirror pods stand for what a node runs anyway; they are left as they are and may use neither accounts nor secrets.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.plugins.service_account.mounting import mount_token
from pilothouse.admission.plugins.service_account.secret_references import (
    check_ephemeral_references,
    check_references,
    references_secret,
)
from pilothouse.admission.refusals import forbidden, unnameable
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.workers import weighed

_PODS: Final = GroupResource("", "pods")
_DEFAULT: Final = "default"
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_ATTEMPTS: Final = 10


class ServiceAccount(Plugin):
    """See the module's docstring."""

    name = "ServiceAccount"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._accounts = environment.objects("", "v1", "serviceaccounts")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """New pods, and containers added to running ones."""
        if resource != _PODS:
            return False
        return (operation == CREATE and subresource in ("", "ephemeralcontainers")) or (
            operation == UPDATE and subresource == "ephemeralcontainers"
        )

    async def admit(self, attributes: Attributes) -> None:
        """Fill in account, token and pull secrets."""
        pod = attributes.object
        if pod is None or attributes.operation != CREATE:
            return
        if _is_mirror(pod):
            _check_mirror(attributes, pod.get("spec") or {})
            return
        spec = pod.setdefault("spec", {})
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = _DEFAULT
        account = await self._find(attributes, spec["serviceAccountName"])
        if _mounts_token(account, spec):
            await weighed(attributes.weight, mount_token, spec, self.environment.rng)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": each.get("name", "")} for each in account["imagePullSecrets"]]
        if _enforces(account):
            await weighed(attributes.weight, check_references, attributes, account, spec)

    async def validate(self, attributes: Attributes) -> None:
        """Refuse pods without an account, and secrets that the account does not share."""
        pod = attributes.object
        if pod is None:
            return
        spec = pod.get("spec") or {}
        if attributes.operation == CREATE and _is_mirror(pod):
            _check_mirror(attributes, spec)
            return
        name = spec.get("serviceAccountName")
        if not name:
            where = f"{attributes.namespace}/{pod['metadata'].get('name', '')}"
            raise forbidden(attributes, f"no service account specified for pod {where}")
        account = await self._find(attributes, name)
        if _enforces(account):
            if attributes.operation == UPDATE:
                await weighed(attributes.weight, check_ephemeral_references, account, spec)
            else:
                await weighed(attributes.weight, check_references, attributes, account, spec)

    async def _find(self, attributes: Attributes, name: str) -> dict[str, Any]:
        accounts, namespace = self._accounts, attributes.namespace
        account = accounts.get(namespace, name) or await accounts.find(namespace, name)
        if account is not None:
            return account
        if name == _DEFAULT:
            interval = (100 + self.environment.rng.randrange(100)) / 1000
            for _ in range(_ATTEMPTS - 1):
                await asyncio.sleep(interval)
                account = await accounts.find(namespace, name)
                if account is not None:
                    return account
        why = unnameable(name) or f"serviceaccount {quote(name)} not found"
        raise forbidden(attributes, f"error looking up service account {namespace}/{name}: {why}")


def _is_mirror(pod: dict[str, Any]) -> bool:
    return _MIRROR in (pod["metadata"].get("annotations") or ())


def _mounts_token(account: dict[str, Any], spec: dict[str, Any]) -> bool:
    wish = spec.get("automountServiceAccountToken")
    if wish is None:
        wish = account.get("automountServiceAccountToken")
    return wish is None or bool(wish)


def _enforces(account: dict[str, Any]) -> bool:
    annotations = account["metadata"].get("annotations")
    return bool(annotations) and annotations.get(_ENFORCE) in _TRUE


def _check_mirror(attributes: Attributes, spec: dict[str, Any]) -> None:
    if spec.get("serviceAccountName"):
        raise forbidden(attributes, "a mirror pod may not reference service accounts")
    if references_secret(spec):
        raise forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")
