"""Approves client certificates of kubelets, if whoever asks may: a node its own, a bootstrap token any node's."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.certificates.conditions import conditions_of, has, is_issued
from pilothouse.controllers.certificates.requests import KUBELET_CLIENT, is_kubelet_client, read
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed

_ACCOUNT: Final = "certificate-controller"
_SELF: Final = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
_NODE: Final = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


class NotAllowed(Exception):
    """Who asks may not have such a certificate; rights may come, so it is tried again."""


def start(context: ControllerContext) -> None:
    """Start the approver."""
    Approver(context).controller.start(context.supervisor)


class Approver:
    """Looks at each request until it is approved or denied."""

    def __init__(self, context: ControllerContext) -> None:
        self._requests = context.informers.of("certificates.k8s.io", "v1", "certificatesigningrequests")
        client = context.client(_ACCOUNT)
        self._client = client.of("certificates.k8s.io", "v1", "certificatesigningrequests")
        self._reviews = client.of("authorization.k8s.io", "v1", "subjectaccessreviews")
        self.controller: Controller[Key] = Controller(
            "certificatesigningrequest-approving-controller",
            self._reconcile,
            workers=5,
            wait_for=[self._requests],
            clock=context.clock,
        )
        add = self.controller.queue.add
        self._requests.add_handler(lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), name=_ACCOUNT)

    async def _reconcile(self, key: Key) -> None:
        request = self._requests.lister.get(*key)
        if request is None or is_issued(request) or has(request, "Approved") or has(request, "Denied"):
            return
        if request["spec"].get("signerName") != KUBELET_CLIENT:
            return
        weight = len(request["spec"]["request"])
        requested = await weighed(weight, read, request)
        if not await weighed(weight, is_kubelet_client, requested):
            return
        ways = [_NODE]
        if request["spec"].get("username") == requested.common_name:
            ways.insert(0, _SELF)
        for subresource, message in ways:
            if await self._is_allowed(request, subresource):
                await self._approve(request, message)
                return
        tried = " ".join(subresource for subresource, _ in ways)
        raise NotAllowed(f'recognized csr "{key[1]}" as [{tried}] but subject access review was not approved')

    async def _is_allowed(self, request: Object, subresource: str) -> bool:
        spec = request["spec"]
        asked = {
            "group": "certificates.k8s.io",
            "resource": "certificatesigningrequests",
            "verb": "create",
            "subresource": subresource,
            "version": "*",
        }
        who = {
            "user": spec.get("username"),
            "uid": spec.get("uid"),
            "groups": spec.get("groups"),
            "extra": spec.get("extra"),
        }
        subject = {name: value for name, value in who.items() if value}
        review = await self._reviews.create({"metadata": {}, "spec": {**subject, "resourceAttributes": asked}})
        return bool(review["status"].get("allowed"))

    async def _approve(self, request: Object, message: str) -> None:
        condition = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message}
        changed = copy_of(request)
        changed.setdefault("status", {})["conditions"] = [*conditions_of(request), condition]
        await self._client.update(changed, subresource="approval")
