"""AlwaysPullImages: every image is pulled anew, so that its puller must be allowed to have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.core.pod_spec.traversal import containers_at, containers_of
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, aggregate, not_supported
from pilothouse.machinery.gvk import GroupResource

_ALWAYS = "Always"


class AlwaysPullImages(Plugin):
    """See the module's docstring."""

    name = "AlwaysPullImages"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods")})
    only_looks = True

    async def admit(self, attributes: Attributes) -> None:
        """Set the policy of containers and image volumes."""
        if _has_no_new_image(attributes):
            return
        for _, holder, field in _policies((attributes.object or {}).get("spec") or {}):
            holder[field] = _ALWAYS

    async def validate(self, attributes: Attributes) -> None:
        """Refuse other policies, which only somebody after us can have set."""
        if _has_no_new_image(attributes):
            return
        errs = [
            forbidden(attributes, str(not_supported(path.child(field), holder.get(field, ""), [_ALWAYS])))
            for path, holder, field in _policies((attributes.object or {}).get("spec") or {})
            if holder.get(field) != _ALWAYS
        ]
        if errs:
            raise errors.generic(aggregate(error.message for error in errs))


def _policies(spec: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any], str]]:
    path = Path("spec")
    for container, at in containers_at(spec, path):
        yield at, container, "imagePullPolicy"
    for position, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("image") is not None:
            yield path.child("volumes").index(position).child("image"), volume["image"], "pullPolicy"


def _has_no_new_image(attributes: Attributes) -> bool:
    if attributes.operation != UPDATE:
        return False
    return _images(attributes.object or {}) <= _images(attributes.old_object or {})


def _images(pod: dict[str, Any]) -> set[str]:
    return {container.get("image", "") for container in containers_of(pod.get("spec") or {})}
