"""Endpoint slices through discovery.k8s.io/v1beta1 and v1alpha1, where topology is a map of labels.

v1beta1   topology's zone is today's ``zone``; its host name is left out where it repeats ``nodeName``
v1alpha1  the same, and one type of addresses, ``IP``, which no later version knows: objects keep it as it is
"""

from __future__ import annotations

from typing import Any, ClassVar

from pilothouse.apis.discovery.endpoint_slice import HOSTNAME, ZONE, EndpointSliceStrategy
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.strategy import Context
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object


class TopologicalSlices(EndpointSliceStrategy):
    """Slices that may say where endpoints are in any label."""

    keeps_topology: ClassVar[bool] = True


class FirstSlices(TopologicalSlices):
    """Addresses of a type that is not known are not judged."""

    address_types: ClassVar[tuple[str, ...]] = ("IP",)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return self._judged(obj, super().validate(ctx, obj))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self._judged(obj, super().validate_update(ctx, obj, old))

    def _judged(self, obj: Object, errs: list[FieldError]) -> list[FieldError]:
        if obj.get("addressType") in self.address_types:
            return errs
        return [error for error in errs if not error.field.endswith(".addresses")]


def from_topology(obj: Object) -> Object:
    """As v1 has it."""
    return {**obj, "endpoints": _each(obj, _from_topology)}


def to_topology(obj: Object) -> Object:
    """As the versions with a topology have it."""
    return {**obj, "endpoints": _each(obj, _to_topology)}


def _each(obj: Object, convert: Any) -> list[Object] | None:
    endpoints = obj.get("endpoints")
    return None if endpoints is None else [convert(endpoint) for endpoint in endpoints]


def _from_topology(endpoint: Object) -> Object:
    made = {name: value for name, value in endpoint.items() if name != "topology"}
    topology = dict(endpoint.get("topology") or {})
    if ZONE in topology:
        made["zone"] = topology.pop(ZONE)
    if HOSTNAME in topology and topology[HOSTNAME] == endpoint.get("nodeName"):
        del topology[HOSTNAME]
    return {**made, "deprecatedTopology": topology} if topology else made


def _to_topology(endpoint: Object) -> Object:
    made = {name: value for name, value in endpoint.items() if name not in ("deprecatedTopology", "zone")}
    topology = dict(endpoint.get("deprecatedTopology") or {})
    if endpoint.get("zone") is not None:
        topology[ZONE] = endpoint["zone"]
    if endpoint.get("nodeName") is not None and not topology.get(HOSTNAME):
        topology[HOSTNAME] = endpoint["nodeName"]
    return {**made, "topology": topology} if topology else made


def default_address_type(obj: Object) -> None:
    if obj.get("addressType") is None:
        obj["addressType"] = "IP"


OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "endpointslices"): Older(from_topology, to_topology, strategy=TopologicalSlices),
    ("v1alpha1", "endpointslices"): Older(from_topology, to_topology, default_address_type, FirstSlices),
}
