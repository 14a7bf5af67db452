"""The certificate by which clients trust the API server, as a ClusterTrustBundle; those of before are deleted."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_SIGNER: Final = "kubernetes.io/kube-apiserver-serving"
_ACCOUNT: Final = "kube-apiserver-serving-clustertrustbundle-publisher"
_KEY: Final = "bundle"


def bundle_name(signer: str, bundle: str) -> str:
    """Names tell bundles apart, so that whoever mounts one sees no other in the middle."""
    return f"{signer.replace('/', ':')}:{hashlib.sha256(bundle.encode()).hexdigest()[:24]}"


def start(context: ControllerContext) -> None:
    """Start the publisher, if there is a certificate to publish."""
    if context.settings.root_ca_file:
        bundle = Path(context.settings.root_ca_file).read_text()
        TrustBundles(context, bundle).controller.start(context.supervisor)


class TrustBundles:
    """Keeps the one bundle of the API server's signer."""

    def __init__(self, context: ControllerContext, bundle: str) -> None:
        self._bundle = bundle
        self._bundles = context.informers.of("certificates.k8s.io", "v1", "clustertrustbundles")
        self._client = context.client(_ACCOUNT).of("certificates.k8s.io", "v1", "clustertrustbundles")
        self.controller: Controller[str] = Controller(
            f"{_ACCOUNT}-controller", self._reconcile, wait_for=[self._bundles], clock=context.clock
        )
        self._bundles.add_handler(self._seen, lambda old, new: self._seen(new), self._seen, name=_ACCOUNT)
        self.controller.queue.add(_KEY)

    def _seen(self, bundle: Object) -> None:
        if bundle["spec"].get("signerName") == _SIGNER:
            self.controller.queue.add(_KEY)

    async def _reconcile(self, key: str) -> None:
        name = bundle_name(_SIGNER, self._bundle)
        known = self._bundles.lister.get("", name)
        if known is None:
            spec = {"signerName": _SIGNER, "trustBundle": self._bundle}
            try:
                await self._client.create({"metadata": {"name": name}, "spec": spec})
            except errors.AlreadyExists:
                return
        elif known["spec"].get("trustBundle") != self._bundle:
            changed = copy_of(known)
            changed["spec"]["trustBundle"] = self._bundle
            await self._client.update(changed)
        for each in self._bundles.lister.list():
            if each["spec"].get("signerName") == _SIGNER and each["metadata"]["name"] != name:
                try:
                    await self._client.delete("", each["metadata"]["name"])
                except errors.NotFound:
                    continue
