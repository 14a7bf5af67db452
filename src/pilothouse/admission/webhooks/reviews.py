"""AdmissionReviews: what is asked, and what of an answer counts."""

from __future__ import annotations

import binascii
from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.admission.versions import Wanted
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.base64_text import decode as decode_base64
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.warning_texts import telling
from pilothouse.net.outgoing import OutgoingError

_GROUP: Final = "admission.k8s.io"
_KNOWN: Final = ("v1", "v1beta1")
JSON_PATCH: Final = "JSONPatch"


class InvalidResponse(ValueError):
    """An answer that does not count."""


@dataclass(slots=True)
class Verdict:
    """What a webhook said."""

    allowed: bool
    result: dict[str, Any] | None = None
    patch: bytes = b""
    patch_type: str = ""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    weight: int = 0
    """How much work the answer is, in bytes."""


def choose_version(versions: tuple[str, ...]) -> str:
    """The first version of reviews that both sides know; empty if there is none."""
    return next((version for version in versions if version in _KNOWN), "")


def make_request(uid: str, attributes: Attributes, wanted: Wanted, obj: Any, old: Any) -> dict[str, Any]:
    """The AdmissionRequest."""
    request: dict[str, Any] = {
        "uid": uid,
        "kind": _kind(wanted.kind),
        "resource": _resource(wanted.resource),
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(attributes.resource),
        "operation": attributes.operation,
        "userInfo": attributes.user.as_info(),
        "object": obj,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": attributes.options or None,
    }
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    return request


def make_review(version: str, request: dict[str, Any]) -> dict[str, Any]:
    """The AdmissionReview around a request."""
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}


def _kind(kind: GroupVersionKind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def read_verdict(version: str, uid: str, review: Any, *, mutating: bool, weight: int = 0) -> Verdict:
    """What an answer says; raises InvalidResponse, and OutgoingError for one that cannot be decoded."""
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise InvalidResponse("webhook response was absent")
    patch = _read_patch(response)
    patch_type = response.get("patchType")
    if version == "v1":
        _verify(uid, review, response, patch, patch_type, mutating=mutating)
    else:
        patch_type = JSON_PATCH if patch else None
    return Verdict(
        allowed=bool(response.get("allowed")),
        result=_dict(response.get("status")),
        patch=patch if mutating else b"",
        patch_type=patch_type or "",
        warnings=telling(map(str, _list(response, "warnings"))),
        annotations={str(key): str(value) for key, value in (_dict(response.get("auditAnnotations")) or {}).items()},
        weight=weight,
    )


def _verify(
    uid: str, review: dict[str, Any], response: dict[str, Any], patch: bytes, patch_type: Any, *, mutating: bool
) -> None:
    if response.get("uid", "") != uid:
        raise InvalidResponse(f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid', '')))}")
    group, slash, version = str(review.get("apiVersion") or "").rpartition("/")
    kind = str(review.get("kind") or "")
    if (group, version, kind) != (_GROUP, "v1", "AdmissionReview"):
        got = f"{group}/{version}, Kind={kind}" if slash or version else f"/, Kind={kind}"
        raise InvalidResponse(f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got {got}")
    if not mutating:
        if patch:
            raise InvalidResponse("validating webhook may not return response.patch")
        if patch_type is not None:
            raise InvalidResponse("validating webhook may not return response.patchType")
        return
    if patch and patch_type is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise InvalidResponse("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise InvalidResponse('webhook returned invalid response.patchType of ""')


def _read_patch(response: dict[str, Any]) -> bytes:
    try:
        return decode_base64(response.get("patch") or "")
    except (binascii.Error, ValueError, TypeError):
        raise InvalidResponse("illegal base64 data in response.patch") from None


def _list(response: dict[str, Any], name: str) -> list[Any]:
    value = response.get(name)
    if value is not None and not isinstance(value, list):
        where = f"Go struct field AdmissionResponse.response.{name} of type []string"
        raise OutgoingError(f"json: cannot unmarshal {json_type(value)} into {where}")
    return value or []


def _dict(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
