"""Structured configuration files (AuthenticationConfiguration, AuthorizationConfiguration): strict reading of YAML.

Unknown fields and wrong types are errors: a misspelt field must not open a door.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pilothouse.machinery.field_errors import FieldError, aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.shapes import unknown_fields, without_nulls
from pilothouse.machinery.yaml_codec import load

Shape = Mapping[str, Any]


class Undecodable(ValueError):
    """The file is no document of the wanted kind."""


def load_configuration(data: bytes, kind: str, versions: Iterable[str], shape: Shape) -> dict[str, Any]:
    """Read a document of this kind. Raises ``Undecodable``."""
    try:
        return _load(data, kind, versions, shape)
    except ValueError as error:
        raise Undecodable(str(error)) from None


def _load(data: bytes, kind: str, versions: Iterable[str], shape: Shape) -> dict[str, Any]:
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
    fields = {key: value for key, value in document.items() if key not in ("kind", "apiVersion")}
    unknown = unknown_fields(fields, shape, str(found_version).rpartition("/")[2])
    if unknown:
        listed = ", ".join(f"unknown field {quote(field)}" for field in unknown)
        raise ValueError(f"strict decoding error: {listed}")
    settled: dict[str, Any] = without_nulls(document, shape)
    return settled


def raise_errors(errs: list[FieldError]) -> None:
    """Raise ``ValueError`` for the errors of a file, if there are any."""
    if errs:
        raise ValueError(aggregate(str(error) for error in errs))
