"""Signs ``cluster-info`` in ``kube-public`` with each bootstrap token, so that who has one can trust what it says."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import orjson

from pilothouse.authn.jose import encode_base64url
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.controllers.tokens.bootstrap import NAMESPACE, is_bootstrap_token, signing_token
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_ACCOUNT: Final = "bootstrap-signer"
_WHERE: Final = ("kube-public", "cluster-info")
_CONTENT: Final = "kubeconfig"
_PREFIX: Final = "jws-kubeconfig-"


def start(context: ControllerContext) -> None:
    """Start the signer."""
    BootstrapSigner(context).controller.start(context.supervisor)


def detached_signature(content: str, token_id: str, secret: str) -> str:
    """A JSON web signature of the content, without the content."""
    head = encode_base64url(orjson.dumps({"alg": "HS256", "kid": token_id}))
    signed = f"{head}.{encode_base64url(content.encode())}".encode()
    return f"{head}..{encode_base64url(hmac.new(secret.encode(), signed, hashlib.sha256).digest())}"


class BootstrapSigner:
    """Keeps the signatures of one config map."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._secrets = context.informers.of("", "v1", "secrets")
        self._maps = context.informers.of("", "v1", "configmaps")
        self._client = context.client(_ACCOUNT).of("", "v1", "configmaps")
        self.controller: Controller[str] = Controller(
            "bootstrap-signer-controller",
            self._reconcile,
            wait_for=[self._secrets, self._maps],
            clock=context.clock,
        )
        self._secrets.add_handler(
            self._secret_seen, lambda old, new: self._secret_seen(new), self._secret_seen, name=_ACCOUNT
        )
        self._maps.add_handler(self._map_seen, lambda old, new: self._map_seen(new), name=_ACCOUNT)

    def _secret_seen(self, secret: Object) -> None:
        if is_bootstrap_token(secret):
            self.controller.queue.add(_CONTENT)

    def _map_seen(self, config_map: Object) -> None:
        if (config_map["metadata"]["namespace"], config_map["metadata"]["name"]) == _WHERE:
            self.controller.queue.add(_CONTENT)

    async def _reconcile(self, key: str) -> None:
        config_map = self._maps.lister.get(*_WHERE)
        data = {} if config_map is None else config_map.get("data") or {}
        if config_map is None or _CONTENT not in data:
            return
        wanted = {name: value for name, value in data.items() if not name.startswith(_PREFIX)}
        for token_id, secret in self._tokens().items():
            wanted[f"{_PREFIX}{token_id}"] = detached_signature(data[_CONTENT], token_id, secret)
        if wanted == data:
            return
        try:
            await self._client.update({**copy_of(config_map), "data": wanted})
        except (errors.NotFound, errors.Conflict):
            return

    def _tokens(self) -> dict[str, str]:
        now = self._clock.now()
        secrets = filter(is_bootstrap_token, self._secrets.lister.list(NAMESPACE))
        return dict(token for secret in secrets if (token := signing_token(secret, now)) is not None)
