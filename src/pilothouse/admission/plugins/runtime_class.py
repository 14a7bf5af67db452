"""RuntimeClass: the class a pod names gives it overhead, selector and tolerations; nobody else may set overhead."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden, unnameable
from pilothouse.admission.tolerations import merge_tolerations
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.quantity import QuantityError, parse
from pilothouse.machinery.schema.emptied import as_given
from pilothouse.machinery.workers import weighed

_MISMATCH: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNFOUNDED: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin):
    """See the module's docstring."""

    name = "RuntimeClass"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("", "pods")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._classes = environment.late_objects("node.k8s.io", "v1", "runtimeclasses")

    async def admit(self, attributes: Attributes) -> None:
        """Apply the class to the pod."""
        spec = _spec(attributes)
        if spec.get("runtimeClassName") is None:
            return
        found = await self._find(attributes, spec["runtimeClassName"])
        overhead = found.get("overhead")
        if overhead is not None:
            fixed = overhead.get("podFixed") or {}
            if spec.get("overhead") and not same_amounts(fixed, spec["overhead"]):
                raise forbidden(attributes, _MISMATCH)
            if fixed:
                spec["overhead"] = dict(fixed)
            else:
                spec.pop("overhead", None)
        scheduling = found.get("scheduling")
        if scheduling is not None:
            await weighed(attributes.weight, _set_scheduling, attributes, spec, scheduling)

    async def validate(self, attributes: Attributes) -> None:
        """Refuse overhead that is not the class's."""
        spec = _spec(attributes)
        name = spec.get("runtimeClassName")
        overhead = None
        if name is not None:
            overhead = (await self._find(attributes, name)).get("overhead")
        if overhead is not None:
            if not same_amounts(overhead.get("podFixed") or {}, spec.get("overhead") or {}):
                raise forbidden(attributes, _MISMATCH)
        elif as_given(spec, "overhead") is not None:
            raise forbidden(attributes, _UNFOUNDED)

    async def _find(self, attributes: Attributes, name: str) -> dict[str, Any]:
        found = await self._classes.find("", name)
        if found is None:
            if why := unnameable(name):
                raise errors.generic(why)
            raise forbidden(attributes, f"pod rejected: RuntimeClass {quote(name)} not found")
        return found


def _spec(attributes: Attributes) -> dict[str, Any]:
    spec: dict[str, Any] = (attributes.object or {}).get("spec") or {}
    return spec


def _set_scheduling(attributes: Attributes, spec: dict[str, Any], scheduling: dict[str, Any]) -> None:
    wanted = scheduling.get("nodeSelector") or {}
    given = spec.get("nodeSelector")
    for key, value in sorted(wanted.items()):
        if given is not None and given.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {given[key]}"
            )
            raise forbidden(attributes, why)
    if wanted:
        spec["nodeSelector"] = {**(given or {}), **wanted}
    tolerations = merge_tolerations(spec.get("tolerations") or [], scheduling.get("tolerations") or [])
    if tolerations:
        spec["tolerations"] = tolerations


def same_amounts(left: dict[str, str], right: dict[str, str]) -> bool:
    """Whether two resource lists hold equal amounts, however they are written."""
    if left.keys() != right.keys():
        return False
    try:
        return all(value == right[name] or parse(str(value)) == parse(str(right[name])) for name, value in left.items())
    except QuantityError:
        return False
