"""Structured configuration files (AuthenticationConfiguration, AuthorizationConfiguration): strict reading of YAML.

The shape of a file is plain data: a dict of known fields, where a list with one item describes a list and a type
(str, bool) a value. Unknown fields and wrong types are errors: a misspelt field must not open a door.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pilothouse.machinery.field_errors import FieldError, aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.yaml_codec import load

Shape = Mapping[str, Any]
_GO_TYPES = {str: "string", bool: "bool"}


def load_configuration(data: bytes, kind: str, versions: Iterable[str], shape: Shape) -> dict[str, Any]:
    """Read a document of this kind. Raises ``ValueError``."""
    if not data:
        raise ValueError("empty config data")
    document = load(data, strict=True)
    if not isinstance(document, dict):
        raise ValueError("couldn't get version/kind; json parse error: the document is not an object")
    known = [f"apiserver.config.k8s.io/{version}" for version in versions]
    found_kind, found_version = document.get("kind"), document.get("apiVersion")
    if not found_kind:
        raise ValueError("Object 'Kind' is missing in the configuration file")
    if found_kind != kind or found_version not in known:
        raise ValueError(f"no kind {quote(str(found_kind))} is registered for version {quote(str(found_version))}")
    unknown = list(_unknown_fields({k: v for k, v in document.items() if k not in ("kind", "apiVersion")}, shape, ""))
    if unknown:
        listed = ", ".join(f"unknown field {quote(field)}" for field in unknown)
        raise ValueError(f"strict decoding error: {listed}")
    return document


def raise_faults(faults: list[FieldError]) -> None:
    """Raise ``ValueError`` for the faults of a file, if there are any."""
    if faults:
        raise ValueError(aggregate(str(fault) for fault in faults))


def _unknown_fields(value: Any, shape: Any, path: str) -> Iterable[str]:
    if value is None:
        return
    if isinstance(shape, type):
        if not isinstance(value, shape):
            wanted = _GO_TYPES[shape]
            raise ValueError(f"json: cannot unmarshal {_json_type(value)} into Go struct field {path} of type {wanted}")
        return
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise ValueError(f"json: cannot unmarshal {_json_type(value)} into Go struct field {path} of type []")
        for index, item in enumerate(value):
            yield from _unknown_fields(item, shape[0], f"{path}[{index}]")
        return
    if not isinstance(value, dict):
        raise ValueError(f"json: cannot unmarshal {_json_type(value)} into Go struct field {path} of type struct")
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        if key not in shape:
            yield where
        else:
            yield from _unknown_fields(item, shape[key], where)


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "object"
