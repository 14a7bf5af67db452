"""Objects within objects (``x-kubernetes-embedded-resource``): their metadata is decoded and checked like any other.

``coerce`` brings metadata into the form Go would write and drops what ObjectMeta does not have; ``check`` validates.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.apis import types
from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.apis.metadata import validate_metadata
from pilothouse.apis.object_names import name_is_path_segment
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.unknown import unknown_fields

_META: Final = "meta.v1.ObjectMeta"


def coerce_metadata(metadata: Any) -> tuple[dict[str, Any], list[str]]:
    """Metadata as ObjectMeta has it, and the names of fields it does not have. Raises ``DecodeError``."""
    struct = types.struct(_META)
    if metadata is None:
        return {}, []
    try:
        decoded, unknown = decode(struct, metadata)
    except DecodeError:
        # kube-apiserver reads a map, and of several errors tells the one that comes first in it.
        decoded, unknown = decode(struct, dict(sorted(metadata.items())) if isinstance(metadata, dict) else metadata)
    if decoded.get("creationTimestamp", "") is None:
        del decoded["creationTimestamp"]
    return decoded, list(unknown_fields(struct, metadata)) if unknown else []


def lenient_metadata(metadata: Any) -> dict[str, Any]:
    """What can be read of stored metadata: a field that does not fit is left out."""
    try:
        return coerce_metadata(metadata)[0]
    except DecodeError:
        pass
    fitting: dict[str, Any] = {}
    for key, value in metadata.items() if isinstance(metadata, dict) else ():
        try:
            fitting |= coerce_metadata({key: value})[0]
        except DecodeError:
            continue
    return fitting


def coerce(value: Any, node: Node | None, path: Path | None, dropped: list[str]) -> None:
    """Bring embedded objects below a value into form; notes dropped fields. Raises ``DecodeError``."""
    if node is None or not node.has_embedded:
        return
    if value.__class__ is dict:
        for key in list(value):
            if node.embedded:
                _coerce_type_field(value, key, path, dropped)
            child = node.properties.get(key)
            if child is not None:
                coerce(value[key], child, _child(path, key), dropped)
            elif node.additional is not None:
                coerce(value[key], node.additional, (path or Path()).key(key), dropped)
    elif value.__class__ is list:
        for position, item in enumerate(value):
            coerce(item, node.items, (path or Path()).index(position), dropped)


def _child(path: Path | None, key: str) -> Path:
    return Path(key) if path is None else path.child(key)


def _coerce_type_field(value: dict[str, Any], key: str, path: Path | None, dropped: list[str]) -> None:
    item = value[key]
    where = _child(path, key)
    if key in ("apiVersion", "kind"):
        if item.__class__ is not str:
            raise DecodeError(message=str(invalid(where, item, "must be a string")))
    elif key == "metadata":
        try:
            value[key], unknown = coerce_metadata(item)
        except DecodeError as error:
            shown = orjson.loads(orjson.dumps(item, option=orjson.OPT_SORT_KEYS))
            raise DecodeError(message=str(invalid(where, shown, str(error)))) from None
        dropped += (f"{where}.{name}" for name in unknown)


def check(value: Any, node: Node | None, path: Path | None, errs: list[FieldError]) -> None:
    """Errors of embedded objects below a value."""
    if node is None or not node.has_embedded:
        return
    if value.__class__ is dict:
        if node.embedded:
            check_object(value, path, errs)
        for key, item in value.items():
            child = node.properties.get(key)
            if child is not None:
                check(item, child, _child(path, key), errs)
            elif node.additional is not None:
                check(item, node.additional, (path or Path()).key(key), errs)
    elif value.__class__ is list:
        for position, item in enumerate(value):
            check(item, node.items, (path or Path()).index(position), errs)


def check_object(value: dict[str, Any], path: Path | None, errs: list[FieldError]) -> None:
    errs += (required(_child(path, key)) for key in ("apiVersion", "kind") if key not in value)
    if "apiVersion" in value:
        _check_version(value["apiVersion"], _child(path, "apiVersion"), errs)
    if "kind" in value:
        _check_kind(value["kind"], _child(path, "kind"), errs)
    if "metadata" in value:
        where = _child(path, "metadata")
        try:
            metadata, _ = coerce_metadata(value["metadata"])
        except DecodeError as error:
            errs.append(invalid(where, value["metadata"], str(error)))
            return
        metadata.setdefault("name", "fakename")
        namespaced = bool(metadata.get("namespace"))
        errs += validate_metadata(metadata, namespaced=namespaced, validate_name=name_is_path_segment, path=where)


def _check_version(version: Any, path: Path, errs: list[FieldError]) -> None:
    if not isinstance(version, str):
        errs.append(invalid(path, version, "must be a string"))
    elif not version:
        errs.append(invalid(path, version, "must not be empty"))
    else:
        try:
            parse_group_version(version)
        except ValueError as error:
            errs.append(invalid(path, version, str(error)))


def _check_kind(kind: Any, path: Path, errs: list[FieldError]) -> None:
    if not isinstance(kind, str):
        errs.append(invalid(path, kind, "must be a string"))
    elif not kind:
        errs.append(invalid(path, kind, "must not be empty"))
    else:
        messages = names.check_dns1035_label(kind.lower())
        if messages:
            why = "may have mixed case, but should otherwise match: " + ",".join(messages)
            errs.append(invalid(path, kind, why))
