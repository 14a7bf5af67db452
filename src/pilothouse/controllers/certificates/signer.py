"""Signs what was approved for the signers of Kubernetes itself."""

from __future__ import annotations

import asyncio
import base64
from typing import Final

from pilothouse.controllers.certificates.authority import Authority, at, lifetime
from pilothouse.controllers.certificates.conditions import conditions_of, has, is_approved, is_issued
from pilothouse.controllers.certificates.requests import SIGNERS, BadRequest, check, read
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import format_time
from pilothouse.machinery.workers import weighed

_ACCOUNT: Final = "certificate-controller"


def start(context: ControllerContext) -> None:
    """Start the signer, if it has something to sign with."""
    settings = context.settings
    if settings.signing_cert_file and settings.signing_key_file:
        authority = Authority(settings.signing_cert_file, settings.signing_key_file)
        Signer(context, authority).controller.start(context.supervisor)


class Signer:
    """One authority for all signers, as kube-controller-manager has without more flags."""

    def __init__(self, context: ControllerContext, authority: Authority) -> None:
        self._authority, self._clock, self._most = authority, context.clock, context.settings.signing_seconds
        self._requests = context.informers.of("certificates.k8s.io", "v1", "certificatesigningrequests")
        self._client = context.client(_ACCOUNT).of("certificates.k8s.io", "v1", "certificatesigningrequests")
        self.controller: Controller[Key] = Controller(
            "certificatesigningrequest-signing-controller",
            self._reconcile,
            workers=5,
            wait_for=[self._requests],
            clock=context.clock,
        )
        add = self.controller.queue.add
        self._requests.add_handler(lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), name="signing")

    async def _reconcile(self, key: Key) -> None:
        request = self._requests.lister.get(*key)
        if request is None or not is_approved(request) or has(request, "Failed") or is_issued(request):
            return
        signer = request["spec"].get("signerName")
        if signer not in SIGNERS:
            return
        weight = len(request["spec"]["request"])
        requested = await weighed(weight, read, request)
        try:
            await weighed(weight, check, requested, signer)
        except BadRequest as error:
            await self._fail(request, str(error))
            return
        seconds = lifetime(request["spec"].get("expirationSeconds"), self._most)
        now = at(self._clock.now().seconds)
        certificate = await asyncio.to_thread(self._authority.sign, requested, seconds, now)
        changed = copy_of(request)
        changed["status"]["certificate"] = base64.b64encode(certificate).decode()
        await self._client.update_status(changed)

    async def _fail(self, request: Object, message: str) -> None:
        condition = {
            "type": "Failed",
            "status": "True",
            "reason": "SignerValidationFailure",
            "message": message,
            "lastUpdateTime": format_time(self._clock.now()),
        }
        changed = copy_of(request)
        changed["status"]["conditions"] = [*conditions_of(request), condition]
        await self._client.update_status(changed)
