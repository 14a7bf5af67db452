"""PodPreset: variables, volumes and mounts of matching presets go into new pods. A pod that conflicts with them
is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.apis.legacy import older
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery import labels
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object

_PREFIX: Final = "podpreset.admission.kubernetes.io"
_MIRROR: Final = "kubernetes.io/config.mirror"
_CONTAINERS: Final = ("containers", "initContainers")
Key = Callable[[Object], Any]


class _ConflictError(Exception):
    """A preset wants a value where there is another one."""


class PodPreset(Plugin):
    """See the module's docstring."""

    name = "PodPreset"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("", "pods")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        older.load()
        self._presets = environment.objects("settings.k8s.io", "v1alpha1", "podpresets")

    async def admit(self, attributes: Attributes) -> None:
        """Inject what the presets of the namespace hold."""
        pod = attributes.object
        if pod is None or attributes.subresource:
            return
        annotations = pod["metadata"].get("annotations") or {}
        if _MIRROR in annotations or annotations.get(f"{_PREFIX}/exclude") == "true":
            return
        await self._presets.ready()
        own = pod["metadata"].get("labels") or {}
        presets = [
            preset
            for preset in self._presets.list(attributes.namespace)
            if labels.from_object(preset["spec"].get("selector") or {}).matches(own)
        ]
        if presets:
            _apply(pod, presets)


def _apply(pod: Object, presets: list[Object]) -> None:
    specs = [orjson.loads(orjson.dumps(preset["spec"])) for preset in presets]
    spec = pod["spec"]
    try:
        volumes = _merged(spec.get("volumes"), specs, "volumes", _name)
        made = {name: [_injected(each, specs) for each in spec.get(name) or ()] for name in _CONTAINERS}
    except _ConflictError:
        return
    if volumes:
        spec["volumes"] = volumes
    spec.update({name: containers for name, containers in made.items() if containers})
    notes = {f"{_PREFIX}/podpreset-{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in presets}
    pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **notes}


def _injected(container: Object, specs: list[Object]) -> Object:
    made = {
        "env": _merged(container.get("env"), specs, "env", _name),
        "envFrom": _merged(container.get("envFrom"), specs, "envFrom", _source),
        "volumeMounts": _merged(container.get("volumeMounts"), specs, "volumeMounts", _name),
    }
    _check_paths(made["volumeMounts"])
    return {**container, **{name: items for name, items in made.items() if items}}


def _merged(own: list[Object] | None, specs: list[Object], field: str, key: Key) -> list[Object]:
    made = list(own or ())
    known = {key(item): item for item in made}
    for spec in specs:
        for item in spec.get(field) or ():
            found = known.setdefault(key(item), item)
            if found is item:
                made.append(item)
            elif found != item:
                raise _ConflictError
    return made


def _check_paths(mounts: list[Object]) -> None:
    """No two mounts may share a path, unless they are the same."""
    by_path: dict[str, Object] = {}
    for mount in mounts:
        if by_path.setdefault(mount.get("mountPath", ""), mount) != mount:
            raise _ConflictError


def _name(item: Object) -> str:
    return str(item.get("name", ""))


def _source(item: Object) -> tuple[str, ...]:
    refs = (item.get(name) or {} for name in ("configMapRef", "secretRef"))
    return (item.get("prefix", ""), *(ref.get("name", "") for ref in refs))
