"""Validation of CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.field_errors import FieldError

Object = dict[str, Any]


def validate_definition(crd: Object) -> list[FieldError]:
    return []


def validate_definition_update(crd: Object, old: Object) -> list[FieldError]:
    return []
