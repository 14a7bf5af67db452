"""Priority: the class a pod or pod group names becomes the number schedulers read; one class may be the default."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.gvk import GroupResource

_PODS: Final = GroupResource("", "pods")
_CLASSES: Final = GroupResource("scheduling.k8s.io", "priorityclasses")
_GROUPS: Final = {
    GroupResource("scheduling.k8s.io", "podgroups"): ("GenericWorkload", "pod group"),
    GroupResource("scheduling.k8s.io", "compositepodgroups"): ("CompositePodGroup", "composite pod group"),
}


class Resolved(NamedTuple):
    """What a class stands for."""

    name: str
    value: int
    policy: str | None


_NONE: Final = Resolved("", 0, "PreemptLowerPriority")


class Priority(Plugin):
    """See the module's docstring."""

    name = "Priority"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._classes = environment.late_objects("scheduling.k8s.io", "v1", "priorityclasses")
        self._preempting_groups = environment.enabled("PodGroupPreemptionPolicy")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Pods and classes when they change, groups when they are made."""
        if subresource:
            return False
        if resource in (_PODS, _CLASSES):
            return operation in (CREATE, UPDATE)
        return resource in _GROUPS and operation == CREATE and self.environment.enabled(_GROUPS[resource][0])

    async def admit(self, attributes: Attributes) -> None:
        """Resolve the class."""
        obj = attributes.object
        resource = attributes.resource.resource
        if obj is None or resource == _CLASSES.resource:
            return
        if attributes.operation == UPDATE:
            _preserve(obj, attributes.old_object or {})
            return
        await self._classes.ready()
        spec = obj.setdefault("spec", {})
        name = spec.get("priorityClassName")
        resolved = await self._resolve(attributes, name) if name else self._default()
        if resource == _PODS.resource:
            _set_pod(attributes, spec, resolved)
        else:
            self._set_group(attributes, spec, resolved, _GROUPS[attributes.resource.group_resource][1])

    async def validate(self, attributes: Attributes) -> None:
        """Refuse a second default class."""
        obj = attributes.object
        if attributes.resource.resource != _CLASSES.resource or obj is None or not obj.get("globalDefault"):
            return
        await self._classes.ready()
        default = self._default()
        if default is _NONE:
            return
        if attributes.operation == CREATE or default.name != obj["metadata"].get("name"):
            why = f"PriorityClass {default.name} is already marked as default. Only one default can exist"
            raise forbidden(attributes, why)

    async def _resolve(self, attributes: Attributes, name: str) -> Resolved:
        found = self._classes.get("", name) or await self._classes.find("", name)
        if found is None:
            raise forbidden(attributes, f"no PriorityClass with name {name} was found")
        return _resolved(found)

    def _default(self) -> Resolved:
        return self._classes.remembered("default", self._find_default)

    def _find_default(self) -> Resolved:
        """Two defaults can come from a race; the lower one counts."""
        defaults = [_resolved(each) for each in self._classes.list() if each.get("globalDefault")]
        return min(defaults, key=lambda each: each.value, default=_NONE)

    def _set_group(self, attributes: Attributes, spec: dict[str, Any], resolved: Resolved, kind: str) -> None:
        given = spec.get("priority")
        if given is not None and given != resolved.value:
            why = (
                f"priority set in the {kind} ({given}) must match the priority computed ({resolved.value}) "
                "based on the priority class set in the spec"
            )
            raise forbidden(attributes, why)
        spec["priority"] = resolved.value
        if resolved.name:
            spec["priorityClassName"] = resolved.name
        if self._preempting_groups and resolved.policy is not None:
            _set_policy(attributes, spec, resolved.policy, kind)


def _resolved(found: dict[str, Any]) -> Resolved:
    return Resolved(found["metadata"]["name"], found.get("value", 0), found.get("preemptionPolicy"))


def _preserve(obj: dict[str, Any], old: dict[str, Any]) -> None:
    spec, before = obj.setdefault("spec", {}), old.get("spec", {})
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and before.get(field) is not None:
            spec[field] = before[field]


def _set_pod(attributes: Attributes, spec: dict[str, Any], resolved: Resolved) -> None:
    given = spec.get("priority")
    if given is not None and given != resolved.value:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {resolved.value} from the given PriorityClass name"
        )
        raise forbidden(attributes, why)
    if resolved.name:
        spec["priorityClassName"] = resolved.name
    spec["priority"] = resolved.value
    if resolved.policy is not None:
        _set_policy(attributes, spec, resolved.policy, "pod")


def _set_policy(attributes: Attributes, spec: dict[str, Any], policy: str, kind: str) -> None:
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        why = (
            f"the string value of PreemptionPolicy ({given}) must not be provided in {kind} spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden(attributes, why)
    spec["preemptionPolicy"] = policy
