"""Secrets of type ``kubernetes.io/service-account-token``: filled for accounts that exist, deleted with them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

from pilothouse.authn.jose import Signer, load_private_key
from pilothouse.authn.service_account import LEGACY_ISSUER
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_BY_ACCOUNT: Final = "token-secrets-by-account"


def start(context: ControllerContext) -> None:
    """Start the controller, if there is a key to sign with."""
    settings = context.settings
    if settings.service_account_key_file:
        signer = Signer(load_private_key(Path(settings.service_account_key_file).read_bytes()))
        root = Path(settings.root_ca_file).read_bytes() if settings.root_ca_file else b""
        ServiceAccountTokens(context, signer, root).controller.start(context.supervisor)


class ServiceAccountTokens:
    """Fills and deletes token secrets. Acts as the controller manager itself: nobody else may read all secrets."""

    def __init__(self, context: ControllerContext, signer: Signer, root: bytes) -> None:
        self._signer, self._root = signer, root
        client = context.clients.controller_manager()
        self._secret_client, self._account_client = (
            client.of("", "v1", "secrets"),
            client.of("", "v1", "serviceaccounts"),
        )
        self._secrets = context.informers.of("", "v1", "secrets")
        self._secrets.add_index(_BY_ACCOUNT, _account_keys)
        self._accounts = context.informers.of("", "v1", "serviceaccounts")
        self.controller: Controller[Key] = Controller(
            "serviceaccount-token-controller",
            self._reconcile,
            workers=5,
            wait_for=[self._secrets, self._accounts],
            clock=context.clock,
        )
        self._secrets.add_handler(self._seen, lambda old, new: self._seen(new), self._gone, name="tokens")
        self._accounts.add_handler(self._account_seen, on_delete=self._account_seen, name="tokens")

    def _seen(self, secret: Object) -> None:
        if secret.get("type") == TYPE:
            self.controller.queue.add(key_of(secret))

    def _gone(self, secret: Object) -> None:
        """What named the secret must forget it; the key of a secret that is not there says so."""
        self._seen(secret)

    def _account_seen(self, account: Object) -> None:
        for secret in self._secrets.lister.by_index(_BY_ACCOUNT, "/".join(key_of(account))):
            self._seen(secret)

    async def _reconcile(self, key: Key) -> None:
        secret = self._secrets.lister.get(*key)
        if secret is None:
            await self._forget(key)
        elif secret.get("type") == TYPE:
            account = await self._account_of(secret)
            if account is None:
                await self._delete(secret)
            else:
                await self._fill(secret, account)

    async def _account_of(self, secret: Object) -> Object | None:
        """The account of a secret. That it has gone is believed only of the server itself."""
        annotations = secret["metadata"].get("annotations") or {}
        name, uid = annotations.get(ACCOUNT_NAME) or "", annotations.get(ACCOUNT_UID) or ""
        namespace = secret["metadata"]["namespace"]
        account = self._accounts.lister.get(namespace, name)
        if account is None or uid not in ("", account["metadata"]["uid"]):
            try:
                account = await self._account_client.get(namespace, name)
            except errors.NotFound:
                return None
        return account if uid in ("", account["metadata"]["uid"]) else None

    async def _delete(self, secret: Object) -> None:
        metadata = secret["metadata"]
        try:
            await self._secret_client.delete(metadata["namespace"], metadata["name"], uid=metadata["uid"])
        except (errors.NotFound, errors.Conflict):
            return

    async def _fill(self, secret: Object, account: Object) -> None:
        missing = self._missing(secret, account)
        if not missing:
            return
        changed = copy_of(secret)
        changed["data"] = (changed.get("data") or {}) | missing
        annotations = changed["metadata"].setdefault("annotations", {})
        annotations |= {ACCOUNT_NAME: account["metadata"]["name"], ACCOUNT_UID: account["metadata"]["uid"]}
        try:
            await self._secret_client.update(changed)
        except (errors.NotFound, errors.Conflict):
            return

    def _missing(self, secret: Object, account: Object) -> dict[str, str]:
        data = secret.get("data") or {}
        missing: dict[str, str] = {}
        if self._root and data.get("ca.crt") != _encoded(self._root):
            missing["ca.crt"] = _encoded(self._root)
        if not data.get("namespace"):
            missing["namespace"] = _encoded(secret["metadata"]["namespace"].encode())
        if not data.get("token"):
            missing["token"] = _encoded(self._signer.sign(claims_of(secret, account)).encode())
        return missing

    async def _forget(self, key: Key) -> None:
        """Take a secret that has gone off the accounts that name it."""
        for account in self._accounts.lister.list(key[0]):
            if all(each.get("name") != key[1] for each in account.get("secrets") or ()):
                continue
            changed = copy_of(account)
            changed["secrets"] = [each for each in changed["secrets"] if each.get("name") != key[1]]
            try:
                await self._account_client.update(changed)
            except errors.NotFound:
                continue


def claims_of(secret: Object, account: Object) -> dict[str, str]:
    """What such a token says: it holds for as long as its secret and account are there."""
    namespace, name = key_of(account)
    private = "kubernetes.io/serviceaccount"
    return {
        "iss": LEGACY_ISSUER,
        "sub": f"system:serviceaccount:{namespace}:{name}",
        f"{private}/namespace": namespace,
        f"{private}/secret.name": secret["metadata"]["name"],
        f"{private}/service-account.name": name,
        f"{private}/service-account.uid": account["metadata"]["uid"],
    }


def _account_keys(secret: Object) -> list[str]:
    if secret.get("type") != TYPE:
        return []
    name = (secret["metadata"].get("annotations") or {}).get(ACCOUNT_NAME)
    return [f"{secret['metadata']['namespace']}/{name}"] if name else []


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
