"""Classes of volume attributes are kept while a volume or a claim names them."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.volumes.protection import Protected, Protection
from pilothouse.machinery.objects import Object

_BY_ATTRIBUTES: Final = "by-volume-attributes-class"


def start(context: ControllerContext) -> None:
    """Classes of volume attributes are kept while a volume or a claim names them."""
    claims, volumes = (
        context.informers.of("", "v1", "persistentvolumeclaims"),
        context.informers.of("", "v1", "persistentvolumes"),
    )
    for informer in (claims, volumes):
        informer.add_index(_BY_ATTRIBUTES, attribute_classes)
    classes = context.informers.of("storage.k8s.io", "v1", "volumeattributesclasses")

    async def is_used(each: Object) -> bool:
        name = each["metadata"]["name"]
        return any(informer.lister.by_index(_BY_ATTRIBUTES, name) for informer in (volumes, claims))

    account = "volumeattributesclass-protection-controller"
    protection = Protection(
        context,
        Protected(
            account,
            "kubernetes.io/vac-protection",
            classes,
            context.client(account).of("storage.k8s.io", "v1", "volumeattributesclasses"),
            is_used,
            [claims, volumes],
        ),
    )

    def wake(names: set[str]) -> None:
        for name in names:
            protection.controller.queue.add(("", name))

    for informer in (claims, volumes):
        informer.add_handler(
            on_update=lambda old, new: wake(attribute_classes(old) - attribute_classes(new)),
            on_delete=lambda obj: wake(attribute_classes(obj)),
            name=account,
        )
    protection.controller.start(context.supervisor)


def attribute_classes(obj: Object) -> set[str]:
    """The classes of volume attributes that a claim or a volume has, wants, or is on its way to."""
    status = obj.get("status") or {}
    names = (
        obj["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return {name for name in names if name}
