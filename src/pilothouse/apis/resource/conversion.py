"""Claims, templates and slices between v1beta1 and v1.

v1beta1 has a request's exact form beside its alternatives where v1 has ``exactly``, and a device's content in
``basic``. v1beta2 and v1alpha3 have the shape of v1.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.machinery.objects import Object

_EXACT: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)


def _nested_request(request: Object) -> Object:
    made = {key: value for key, value in request.items() if key not in _EXACT}
    exactly = {key: request[key] for key in _EXACT if key in request}
    if any(exactly.values()) or "adminAccess" in exactly:
        made["exactly"] = exactly
    return made


def _flat_request(request: Object) -> Object:
    made = {key: value for key, value in request.items() if key != "exactly"}
    return {**made, "deviceClassName": "", **(request.get("exactly") or {})}


def _convert_requests(spec: Object, convert: Any) -> Object:
    devices = spec.get("devices")
    if not devices or not devices.get("requests"):
        return spec
    return {**spec, "devices": {**devices, "requests": [convert(request) for request in devices["requests"]]}}


def claim_to_v1(obj: Object) -> Object:
    """A claim of v1beta1."""
    return {**obj, "spec": _convert_requests(obj["spec"], _nested_request)}


def claim_from_v1(obj: Object) -> Object:
    """A claim for v1beta1."""
    return {**obj, "spec": _convert_requests(obj["spec"], _flat_request)}


def template_to_v1(obj: Object) -> Object:
    """A template of v1beta1."""
    return {**obj, "spec": {**obj["spec"], "spec": _convert_requests(obj["spec"]["spec"], _nested_request)}}


def template_from_v1(obj: Object) -> Object:
    """A template for v1beta1."""
    return {**obj, "spec": {**obj["spec"], "spec": _convert_requests(obj["spec"]["spec"], _flat_request)}}


def slice_to_v1(obj: Object) -> Object:
    """A slice of v1beta1."""
    spec = dict(obj["spec"])
    if spec.get("devices"):
        spec["devices"] = [
            {"name": device.get("name", ""), **(device.get("basic") or {})} for device in spec["devices"]
        ]
    return {**obj, "spec": spec}


def slice_from_v1(obj: Object) -> Object:
    """A slice for v1beta1."""
    spec = dict(obj["spec"])
    if spec.get("devices"):
        spec["devices"] = [_with_basic(device) for device in spec["devices"]]
    return {**obj, "spec": spec}


def _with_basic(device: Object) -> Object:
    return {"name": device.get("name", ""), "basic": {key: value for key, value in device.items() if key != "name"}}


CONVERTERS = {
    ("v1beta1", "resourceclaims"): (claim_to_v1, claim_from_v1),
    ("v1beta1", "resourceclaimtemplates"): (template_to_v1, template_from_v1),
    ("v1beta1", "resourceslices"): (slice_to_v1, slice_from_v1),
}
