"""Reading bodies of custom resources: typed by the definition's schema instead of a Go struct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.apiextensions.schema.embedded import coerce_metadata
from pilothouse.endpoints.expected import Expected, StrictErrors, cannot_handle, interpret, other_version
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.schema.decoding import DecodeError

_NOTHING: Final = ObjectSchema({})
_NO_VERSION: Final = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomBody(Expected):
    """A custom resource at one version. A wrong kind is left to validation, as in kube-apiserver."""

    schemas: Mapping[str, ObjectSchema]
    """Of all versions: a patch may make an object say that it is of another one, and it is read as such."""

    def identify(self, value: Any, data: bytes, *, lenient: bool = False) -> GroupVersionKind:
        gvk = interpret(value, self, data)
        if not isinstance(value, dict) or not value.get("kind"):
            raise self._kindless(value, data, lenient=lenient)
        version = value.get("apiVersion")
        if not version or version == "/":
            return GroupVersionKind("", "", gvk.kind)
        return gvk._replace(version="") if version.endswith("/") else gvk

    def _kindless(self, value: Any, data: bytes, *, lenient: bool) -> errors.StatusError:
        """Why a body of no kind is refused: who wants nothing told of fields sees the JSON that was made of it."""
        if not lenient:
            return self.unrecognized(f"Object 'Kind' is missing in '{data.decode('utf-8', 'replace')}'", data)
        shown = data if data[:1] == b"{" else orjson.dumps(value)
        given = value.get("apiVersion") if isinstance(value, dict) else ""
        version = given.rpartition("/")[2] if given and given != "/" else self.gvk.version
        why = f"Object 'Kind' is missing in '{shown.decode('utf-8', 'replace')}'"
        return cannot_handle(self.gvk._replace(version=version), self, why)

    def strict_error(self, gvk: GroupVersionKind, why: str) -> errors.StatusError:
        if not gvk.version:
            return errors.bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        return cannot_handle(gvk, self, why)

    def reader(self, gvk: GroupVersionKind) -> Expected:
        return self

    def check_version(self, gvk: GroupVersionKind) -> None:
        if gvk.group_version != self.gvk.group_version:
            raise other_version(gvk, self)

    def decode(
        self, value: Any, *, owned: bool = False, applied: bool = False, stored: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], StrictErrors | None]:
        try:
            obj: dict[str, Any] = value if owned else large_json.loads(orjson.dumps(value))
            return self._decode(obj, keep_nulls=applied)
        except (RecursionError, orjson.JSONEncodeError):
            raise DecodeError(message="exceeded max depth") from None

    def _decode(self, obj: dict[str, Any], *, keep_nulls: bool) -> tuple[dict[str, Any], StrictErrors | None]:
        if obj.get("apiVersion", "") is None:
            raise DecodeError(message=_NO_VERSION)
        metadata, unknown = coerce_metadata(obj.get("metadata"))
        dropped = [f"metadata.{name}" for name in unknown]
        group, _, version = str(obj.get("apiVersion")).rpartition("/")
        # What says that it is something else is not looked into.
        if (group, obj.get("kind")) == (self.gvk.group, self.gvk.kind):
            dropped += self.schemas.get(version, _NOTHING).clean(obj, keep_nulls=keep_nulls)
        obj["metadata"] = metadata
        if not dropped:
            return obj, None
        return obj, lambda: [f'unknown field "{path}"' for path in dropped]
