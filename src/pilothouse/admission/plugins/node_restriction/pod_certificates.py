"""Certificates a node requests for its pods: everything the request says must be true of a pod that runs there."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugins.node_restriction.authorizing import may
from pilothouse.admission.plugins.node_restriction.pods import MIRROR
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote

_VERB: Final = "request-serviceaccounts-podcertificate-signer"


class PodCertificateCheck:
    """Compares a request with node, pod and service account."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._pods = environment.late_objects("", "v1", "pods")
        self._nodes = environment.late_objects("", "v1", "nodes")
        self._accounts = environment.objects("", "v1", "serviceaccounts")

    async def check(self, node: str, attributes: Attributes) -> None:
        """Refuse requests that do not fit."""
        if not self._environment.enabled("PodCertificateRequest"):
            raise forbidden(attributes, "PodCertificateRequest feature gate is disabled")
        if attributes.operation != CREATE:
            raise forbidden(attributes, f"unexpected operation {attributes.operation}")
        if attributes.subresource:
            raise forbidden(attributes, f"unexpected subresource {attributes.subresource}")
        spec = (attributes.object or {}).get("spec") or {}
        named = spec.get("nodeName", "")
        if named != node:
            why = f"PodCertificateRequest.Spec.NodeName={quote(named)}, which is not the requesting node {quote(node)}"
            raise forbidden(attributes, why)
        where = quote(f"{attributes.namespace}/{spec.get('podName', '')}")
        uid = _uid(await _find(self._nodes, "", named, "node", quote(named)))
        given = spec.get("nodeUID", "")
        if uid != given:
            raise errors.generic(
                f"PodCertificateRequest for pod {where} names node UID {quote(given)}, inconsistent with the running "
                f"node ({quote(uid)})"
            )
        pod = await _find(self._pods, attributes.namespace, spec.get("podName", ""), "pod", where)
        self._check_pod(attributes, spec, pod, where)
        await self._check_account(attributes, spec, where)
        await self._check_signer(attributes, spec, pod, where)

    def _check_pod(self, attributes: Attributes, spec: dict[str, Any], pod: dict[str, Any], where: str) -> None:
        given = spec.get("podUID", "")
        if given != _uid(pod):
            raise errors.generic(
                f"PodCertificateRequest for pod {where} contains pod UID ({quote(given)}) which differs from "
                f"running pod {quote(_uid(pod))}"
            )
        own = pod.get("spec") or {}
        if own.get("nodeName", "") != spec.get("nodeName", ""):
            shown = quote(spec.get("nodeName", ""))
            why = f"pod {where} is not running on node {shown} named in the PodCertificateRequest"
            raise forbidden(attributes, why)
        if MIRROR in (pod["metadata"].get("annotations") or ()):
            raise forbidden(attributes, f"pod {where} is a mirror pod")
        account, running = spec.get("serviceAccountName", ""), own.get("serviceAccountName", "")
        if account != running:
            why = (
                f"PodCertificateRequest for pod {where} contains serviceAccountName ({quote(account)}) that differs "
                f"from running pod ({quote(running)})"
            )
            raise forbidden(attributes, why)

    async def _check_account(self, attributes: Attributes, spec: dict[str, Any], where: str) -> None:
        name = spec.get("serviceAccountName", "")
        shown = quote(f"{attributes.namespace}/{name}")
        account = await _find(self._accounts, attributes.namespace, name, "service account", shown)
        given = spec.get("serviceAccountUID", "")
        if given != _uid(account):
            raise errors.generic(
                f"PodCertificateRequest for pod {where} names service account UID {quote(given)}, which differs from "
                f"the running service account ({quote(_uid(account))})"
            )

    async def _check_signer(
        self, attributes: Attributes, spec: dict[str, Any], pod: dict[str, Any], where: str
    ) -> None:
        signer = spec.get("signerName", "")
        for volume in (pod.get("spec") or {}).get("volumes") or ():
            for source in (volume.get("projected") or {}).get("sources") or ():
                if (source.get("podCertificate") or {}).get("signerName") == signer:
                    return
        account = spec.get("serviceAccountName", "")
        failure = await may(self._environment, attributes, _VERB, signer.replace("/", ":"), account)
        if failure is None:
            return
        if failure:
            why = (
                f"error authorizing {attributes.user.name} to request podcertificaterequests for signer "
                f"{quote(signer)}: {failure}"
            )
            raise forbidden(attributes, why)
        why = f"pod {where} does not mount a podCertificate projected volume for signer {quote(signer)}"
        raise forbidden(attributes, why)


def _uid(obj: dict[str, Any]) -> str:
    return str(obj["metadata"].get("uid", ""))


async def _find(objects: Objects, namespace: str, name: str, word: str, shown: str) -> dict[str, Any]:
    await objects.ready()
    found = objects.get(namespace, name)
    if found is None:
        kind = word.replace(" ", "")
        why = f"while retrieving {word} {shown} named in the PodCertificateRequest: {kind} {quote(name)} not found"
        raise errors.StatusError(404, "NotFound", why, {"name": name, "kind": kind})
    return found
