"""Warnings about a pod spec that is valid but hardly meant: deprecated fields and labels, duplicates, overlaps.

Paths are texts here, with ``prefix`` in front: empty for pods, ``spec.template.`` for a workload's template.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Final

from pilothouse.apis.core.persistent_volume_claim.strategy import warn_about_claim_spec
from pilothouse.apis.core.pod_spec.affinity import PREFERRED, REQUIRED
from pilothouse.apis.core.pod_spec.annotations import APP_ARMOR_PREFIX, SECCOMP_POD, SECCOMP_PREFIX
from pilothouse.apis.core.pod_spec.overlaps import warn_about_overlaps
from pilothouse.apis.core.pod_spec.traversal import CONTAINER_LISTS
from pilothouse.apis.core.resource_names import amount
from pilothouse.apis.deprecated_labels import DEPRECATED
from pilothouse.machinery.addresses import warn_about_ip
from pilothouse.machinery.field_errors import Path
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_label_value
from pilothouse.machinery.objects import Object

_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES: Final = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APP_ARMOR: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
# A response has room for a few thousand characters of warnings, so more than these are never seen.
_LIMIT: Final = 500
_BYTES: Final = ("memory", "ephemeral-storage")


def template_warnings(template: Object | None, path: Path) -> list[str]:
    """Warnings about a workload's template at this path."""
    if template is None:
        return []
    return list(islice(_warnings(template["spec"], template["metadata"], f"{path}.", is_template=True), _LIMIT))


def pod_warnings(pod: Object) -> list[str]:
    """Warnings about a pod."""
    return list(islice(_warnings(pod["spec"], pod["metadata"], "", is_template=False), _LIMIT))


def _warnings(spec: Object, metadata: Object, prefix: str, *, is_template: bool) -> Iterator[str]:
    at = prefix + "spec"
    if "nodeSelector" in spec or "affinity" in spec or "topologySpreadConstraints" in spec:
        yield from _warn_about_nodes(spec, at)
    annotations = metadata.get("annotations")
    if annotations:
        for key, message in _ANNOTATIONS.items():
            if key in annotations:
                yield f"{prefix}metadata.annotations[{key}]: {message}"
    if "volumes" in spec:
        yield from _warn_about_volumes(spec["volumes"], at)
    yield from _warn_about_duplicates(spec, at)
    yield from _warn_about_fractions(spec.get("overhead") or {}, f"{at}.overhead")
    if annotations:
        yield from _warn_about_profiles(spec, annotations, prefix)
    yield from _warn_about_containers(spec, annotations or {}, prefix, is_template)
    yield from _warn_about_ports(spec, at)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        yield f"{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
    for kind in ("podAffinity", "podAntiAffinity"):
        if kind in spec.get("affinity", ()):
            yield from _warn_about_null_selectors(spec["affinity"][kind], f"{at}.affinity.{kind}")
    for position, server in enumerate(spec.get("dnsConfig", {}).get("nameservers") or ()):
        yield from warn_about_ip(f"{at}.dnsConfig.nameservers[{position}]", server)
    for position, alias in enumerate(spec.get("hostAliases") or ()):
        yield from warn_about_ip(f"{at}.hostAliases[{position}].ip", alias.get("ip", ""))


def _warn_about_nodes(spec: Object, at: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in DEPRECATED:
            yield f"{at}.nodeSelector[{key}]: {DEPRECATED[key]}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    base = f"{at}.affinity.nodeAffinity"
    for position, term in enumerate((affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from _warn_about_term(term, f"{base}.{REQUIRED}.nodeSelectorTerms[{position}]", values=False)
    for position, weighted in enumerate(affinity.get(PREFERRED) or ()):
        term = weighted.get("preference") or {}
        yield from _warn_about_term(term, f"{base}.{PREFERRED}[{position}].preference", values=True)
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where, key = f"{at}.topologySpreadConstraints[{position}]", constraint.get("topologyKey", "")
        if key in DEPRECATED:
            yield f"{where}.topologyKey: {key} is {DEPRECATED[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: a null labelSelector results in matching no pod"


def _warn_about_term(term: Object, at: str, *, values: bool) -> Iterator[str]:
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        key, where = expression.get("key", ""), f"{at}.matchExpressions[{position}]"
        if key in DEPRECATED:
            yield f"{where}.key: {key} is {DEPRECATED[key]}"
        if values:
            for index, value in enumerate(expression.get("values") or ()):
                for message in check_label_value(value):
                    yield f"{where}.values[{index}]: {value} is invalid, {message}"


def _warn_about_null_selectors(affinity: Object, at: str) -> Iterator[str]:
    why = "a null labelSelector results in matching no pod"
    for position, term in enumerate(affinity.get(REQUIRED) or ()):
        if term.get("labelSelector") is None:
            yield f"{at}.{REQUIRED}[{position}].labelSelector: {why}"
    for position, weighted in enumerate(affinity.get(PREFERRED) or ()):
        if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
            yield f"{at}.{PREFERRED}[{position}].podAffinityTerm.labelSelector: {why}"


def _warn_about_volumes(volumes: list[Object], at: str) -> Iterator[str]:
    for position, volume in enumerate(volumes):
        where = f"{at}.volumes[{position}]"
        for key, (shown, message) in _VOLUMES.items():
            if key in volume:
                yield f"{where}.{shown}: {message}"
        template = volume["ephemeral"].get("volumeClaimTemplate") if "ephemeral" in volume else None
        if template:
            yield from warn_about_claim_spec(f"{where}.ephemeral.volumeClaimTemplate.spec", template["spec"])
    yield from warn_about_overlaps(volumes)


def _warn_about_duplicates(spec: Object, at: str) -> Iterator[str]:
    for kind, field in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for position, item in enumerate(spec.get(kind) or ()):
            value = item.get(field, "")
            if value in seen:
                yield f"{at}.{kind}[{position}].{field}: duplicate {field} {quote(value)}"
            seen.add(value)
    for position, item in enumerate(spec.get("imagePullSecrets") or ()):
        if not item.get("name"):
            yield f'{at}.imagePullSecrets[{position}].name: invalid empty name ""'


def _warn_about_fractions(amounts: dict[str, str], at: str) -> Iterator[str]:
    for name in _BYTES:
        text = amounts.get(name)
        if text is not None and text[-1] == "m" and amount(text).milli_value() % 1000:
            yield f"{at}[{name}]: fractional byte value {quote(text)} is invalid, must be an integer"


def _warn_about_profiles(spec: Object, annotations: dict[str, str], prefix: str) -> Iterator[str]:
    if SECCOMP_POD in annotations and "seccompProfile" not in (spec.get("securityContext") or ()):
        yield f"{prefix}metadata.annotations[{SECCOMP_POD}]: {_SECCOMP}"


def _warn_about_containers(spec: Object, annotations: dict[str, str], prefix: str, is_template: bool) -> Iterator[str]:
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for kind in CONTAINER_LISTS:
        for position, container in enumerate(spec.get(kind) or ()):
            if annotations:
                yield from _warn_about_annotations(container, annotations, prefix, of_pod, is_template)
            resources = container.get("resources")
            if resources:
                for name in _BYTES:
                    for part in ("limits", "requests"):
                        text = (resources.get(part) or {}).get(name)
                        if text is not None:
                            where = f"{prefix}spec.{kind}[{position}].resources.{part}"
                            yield from _warn_about_fractions({name: text}, where)
            if len(container.get("env") or ()) > 1:
                yield from _warn_about_env(container["env"], f"{prefix}spec.{kind}[{position}].env")


def _warn_about_annotations(
    container: Object, annotations: dict[str, str], prefix: str, of_pod: Object | None, is_template: bool
) -> Iterator[str]:
    context, name = container.get("securityContext") or {}, container.get("name", "")
    key = SECCOMP_PREFIX + name
    if key in annotations and "seccompProfile" not in context:
        yield f"{prefix}metadata.annotations[{key}]: {_SECCOMP}"
    key = APP_ARMOR_PREFIX + name
    if is_template and key in annotations and "appArmorProfile" not in context:
        from_annotation = app_armor_of(annotations[key])
        if of_pod is None or of_pod != from_annotation:
            yield f"{prefix}metadata.annotations[{key}]: {_APP_ARMOR}"


def app_armor_of(annotation: str) -> Object | None:
    """The profile that an old annotation means; None for nonsense."""
    if annotation in ("unconfined", "runtime/default"):
        return {"type": "Unconfined" if annotation == "unconfined" else "RuntimeDefault"}
    name = annotation.removeprefix("localhost/")
    return {"type": "Localhost", "localhostProfile": name} if name and name != annotation else None


def _warn_about_env(variables: list[Object], at: str) -> Iterator[str]:
    """A second definition is fine only if it builds on the first."""
    seen: set[str] = set()
    for position, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in seen:
            value, reference = variable.get("value", ""), f"$({name})"
            if "valueFrom" in variable or value == reference or reference not in value:
                why = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
                yield f"{at}[{position}]: {why}"
        seen.add(name)


def _warn_about_ports(spec: Object, at: str) -> Iterator[str]:
    seen: dict[tuple[int, str], _Ports] = {}
    names: dict[str, str] = {}
    late: list[str] = []
    for kind in CONTAINER_LISTS:
        for of, container in enumerate(spec.get(kind) or ()):
            for position, port in enumerate(container.get("ports") or ()):
                where = f"{at}.{kind}[{of}].ports[{position}]"
                ip, number = port.get("hostIP", ""), port.get("hostPort", 0)
                if ip and not number:
                    yield f"{where}: hostIP set without hostPort: {_show_port(port)}"
                key = (port.get("containerPort", 0), port.get("protocol", ""))
                others = seen.get(key)
                if others is None:
                    others = seen[key] = _Ports()
                else:
                    for what, place in others.conflicts(ip, number):
                        yield f"{where}: {what} port definition with {place}"
                others.add(ip, number, where)
                name = port.get("name")
                if name and name in names:
                    first = names[name]
                    why = f"services and probes that select ports by name will use {first}"
                    late.append(f"{where}: duplicate port name {quote(name)} with {first}, {why}")
                elif name:
                    names[name] = where
    yield from late


class _Ports:
    """Ports with one number and protocol inside of containers, found again by what they are on the host.

    Every conflict yields a warning, and whoever reads them stops after some: nothing here compares all with all.
    """

    __slots__ = ("by_host", "count", "places")

    def __init__(self) -> None:
        self.count = 0
        self.places: list[tuple[int, str, int, str]] = []
        self.by_host: dict[tuple[int, str | None], list[tuple[int, str, int, str]]] = {}

    def add(self, ip: str, number: int, place: str) -> None:
        entry = (self.count, ip, number, place)
        self.count += 1
        self.places.append(entry)
        self.by_host.setdefault((number, ip), []).append(entry)
        if ip or not number:
            self.by_host.setdefault((number, None), []).append(entry)

    def conflicts(self, ip: str, number: int) -> Iterator[tuple[str, str]]:
        """What is wrong with another such port, and where the others are, in their order."""
        if not number:
            candidates = iter(self.places)
        else:
            opposite = None if not ip else ""
            lists = [self.by_host.get(key, ()) for key in ((0, None), (number, ip), (number, opposite))]
            candidates = merge(*lists)
        for _, other_ip, other_number, place in candidates:
            if ip == other_ip and number == other_number:
                yield "duplicate", place
            elif not number or not other_number:
                yield "overlapping", place
            else:
                yield "dangerously ambiguous", place


def _show_port(port: Object) -> str:
    return (
        f"{{Name:{port.get('name', '')} HostPort:{port.get('hostPort', 0)} ContainerPort:{port.get('containerPort', 0)}"
        f" Protocol:{port.get('protocol', '')} HostIP:{port.get('hostIP', '')}}}"
    )
