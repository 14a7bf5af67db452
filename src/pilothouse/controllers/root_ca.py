"""Every namespace has a config map ``kube-root-ca.crt`` with the certificate that clients trust the API server by."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.pod_control import is_namespace_terminating
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

logger = logging.getLogger(__name__)
_CONTROLLER: Final = "root-ca-cert-publisher"
_NAME: Final = "kube-root-ca.crt"
_FIELD: Final = "ca.crt"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def start(context: ControllerContext) -> None:
    """Start the publisher, if there is a certificate to publish."""
    if context.settings.root_ca_file:
        certificate = Path(context.settings.root_ca_file).read_text()
        RootCertificates(context, certificate).controller.start(context.supervisor)
    else:
        logger.warning("No namespace gets a config map %s, which pods need: --root-ca-file is not given", _NAME)


class RootCertificates:
    """Keeps the config map of each active namespace. Keys are namespaces."""

    def __init__(self, context: ControllerContext, certificate: str) -> None:
        self._data = {_FIELD: certificate}
        self._namespaces = context.informers.of("", "v1", "namespaces")
        self._maps = context.informers.of("", "v1", "configmaps")
        self._client = context.client(_CONTROLLER).of("", "v1", "configmaps")
        self.controller: Controller[Key] = Controller(
            "root-ca-certificate-publisher-controller",
            self._reconcile,
            wait_for=[self._namespaces, self._maps],
            clock=context.clock,
        )
        add = self.controller.queue.add
        self._namespaces.add_handler(lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), name=_CONTROLLER)
        self._maps.add_handler(
            on_update=lambda old, new: self._map_seen(new), on_delete=self._map_seen, name=_CONTROLLER
        )

    def _map_seen(self, config_map: Object) -> None:
        if config_map["metadata"]["name"] == _NAME:
            self.controller.queue.add(("", config_map["metadata"]["namespace"]))

    async def _reconcile(self, key: Key) -> None:
        namespace = self._namespaces.lister.get(*key)
        if namespace is None or namespace["status"].get("phase") != "Active":
            return
        known = self._maps.lister.get(key[1], _NAME)
        try:
            if known is None:
                metadata = {
                    "name": _NAME,
                    "namespace": key[1],
                    "annotations": {"kubernetes.io/description": _DESCRIPTION},
                }
                await self._client.create({"metadata": metadata, "data": self._data})
            elif known.get("data") != self._data or not _is_described(known):
                changed = copy_of(known)
                changed["data"] = self._data
                changed["metadata"].setdefault("annotations", {})["kubernetes.io/description"] = _DESCRIPTION
                await self._client.update(changed)
        except errors.AlreadyExists:
            return
        except errors.Forbidden as error:
            if not is_namespace_terminating(error):
                raise
        except errors.NotFound:
            return


def _is_described(config_map: Object) -> bool:
    annotations = config_map["metadata"].get("annotations") or {}
    return bool(annotations.get("kubernetes.io/description"))
