"""NodeDeclaredFeatureValidator: a bound pod changes only in ways that its node says it can follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.quantity import QuantityError, parse

_PODS: Final = GroupResource("", "pods")
_SLICES: Final = GroupResource("resource.k8s.io", "resourceslices")
_DEVICES: Final = "DRANodeAllocatableResources"
Spec = dict[str, Any]


class NodeDeclaredFeatureValidator(Plugin):
    """See the module's docstring."""

    name = "NodeDeclaredFeatureValidator"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._nodes = environment.late_objects("", "v1", "nodes")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Changed pods; resource slices where devices may hold what nodes can allocate."""
        if resource == _PODS:
            return operation == UPDATE and subresource in ("", "resize")
        gate = self.environment.enabled("DRANodeAllocatableResources")
        return gate and resource == _SLICES and operation in (CREATE, UPDATE)

    async def validate(self, attributes: Attributes) -> None:
        """Compare what is needed with what nodes declare."""
        if attributes.resource.resource == "pods":
            await self._validate_pod(attributes)
        else:
            await self._nodes.ready()
            for why in self._slice_errors((attributes.object or {}).get("spec") or {}):
                raise forbidden(attributes, why)

    async def _validate_pod(self, attributes: Attributes) -> None:
        pod, old = attributes.object or {}, attributes.old_object or {}
        spec, before = pod.get("spec") or {}, old.get("spec") or {}
        name = spec.get("nodeName", "")
        if not name or old["metadata"].get("generation") == pod["metadata"].get("generation"):
            return
        needed = [feature for feature, is_needed in _FEATURES if is_needed(before, spec)]
        if not needed:
            return
        await self._nodes.ready()
        node = self._nodes.get("", name)
        if node is None:
            raise forbidden(attributes, f"node {quote(name)} not found")
        missing = [feature for feature in needed if feature not in _declared(node)]
        if missing:
            what = ", ".join(missing)
            raise forbidden(
                attributes, f"pod update requires features {what} which are not available on node {quote(name)}"
            )

    def _slice_errors(self, spec: Spec) -> Iterator[str]:
        for device in spec.get("devices") or ():
            if not device.get("nodeAllocatableResources"):
                continue
            place = device if spec.get("perDeviceNodeSelection") else spec
            shown = quote(device.get("name", ""))
            name, selector = place.get("nodeName"), place.get("nodeSelector")
            if name:
                node = self._nodes.get("", name)
                if node is None:
                    yield f"node {quote(name)} not found for device {shown}"
                else:
                    yield from _lacking(node)
            elif selector is not None or place.get("allNodes"):
                for node in self._nodes.list():
                    if selector is None or selects_node(selector, node):
                        yield from _lacking(node)
            else:
                yield f"device {shown} in ResourceSlice has NodeAllocatableResources but does not map to any nodes"


def _declared(node: dict[str, Any]) -> list[str]:
    return (node.get("status") or {}).get("declaredFeatures") or []


def _lacking(node: dict[str, Any]) -> Iterator[str]:
    if _DEVICES not in _declared(node):
        yield f"node {quote(node['metadata']['name'])} does not support {_DEVICES} feature"


def selects_node(selector: dict[str, Any], node: dict[str, Any]) -> bool:
    """Whether any term of a node selector fits; an empty term fits nothing."""
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    for term in selector.get("nodeSelectorTerms") or ():
        expressions, names = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if (
            (expressions or names)
            and all(_meets(each, labels) for each in expressions)
            and all(_meets(each, fields) for each in names)
        ):
            return True
    return False


def _meets(requirement: dict[str, Any], values: dict[str, str]) -> bool:
    value, wanted = values.get(requirement.get("key", "")), requirement.get("values") or []
    operator = requirement.get("operator")
    if operator == "In":
        return value in wanted
    if operator == "NotIn":
        return value not in wanted
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) is (operator == "Exists")
    try:
        given, limit = int(value or ""), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return given > limit if operator == "Gt" else given < limit


def _resizes_pod(old: Spec, new: Spec) -> bool:
    return bool((old.get("resources") or new.get("resources")) and old.get("resources") != new.get("resources"))


def _resizes_init_container(old: Spec, new: Spec) -> bool:
    pairs = zip(old.get("initContainers") or (), new.get("initContainers") or (), strict=False)
    return any(
        before.get("restartPolicy") != "Always" and before.get("resources") != after.get("resources")
        for before, after in pairs
    )


def _resizes_memory_volume(old: Spec, new: Spec) -> bool:
    before, after = old.get("volumes") or (), new.get("volumes") or ()
    if len(before) != len(after):
        return False
    return any(one.get("name") == two.get("name") and _differ(one, two) for one, two in zip(before, after, strict=True))


def _differ(old: Spec, new: Spec) -> bool:
    volume = new.get("emptyDir") or {}
    limit, before = volume.get("sizeLimit"), (old.get("emptyDir") or {}).get("sizeLimit")
    if volume.get("medium") != "Memory" or limit is None or before is None:
        return False
    try:
        return parse(str(limit)) != parse(str(before))
    except QuantityError:
        return False


_FEATURES: Final[tuple[tuple[str, Callable[[Spec, Spec], bool]], ...]] = (
    ("InPlacePodLevelResourcesVerticalScaling", _resizes_pod),
    ("InPlacePodVerticalScalingInitContainers", _resizes_init_container),
    ("InPlacePodVerticalScalingMemoryBackedVolumes", _resizes_memory_volume),
)
