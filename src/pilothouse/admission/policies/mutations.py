"""Mutating policies: what their expressions make of an object.

An apply configuration is merged into the object as a server-side apply would do it, but owns nothing; it must not touch
what merges only as a whole. A JSON patch whose test fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pilothouse.admission.expressions.evaluation import (
    BUDGET,
    Compiled,
    Compiler,
    ExpressionError,
    Meeting,
    OutOfBudget,
    Run,
)
from pilothouse.admission.policies.errors import MutationError
from pilothouse.admission.policies.inputs import Inputs
from pilothouse.cel.library.patches import JSON_PATCH_TYPE, OBJECT_TYPE, misnamed, to_json, to_native
from pilothouse.cel.types import list_of
from pilothouse.cel.values import EvaluationError, Message
from pilothouse.machinery import json_patch
from pilothouse.machinery.objects import Object
from pilothouse.machinery.structured.merging import merge
from pilothouse.machinery.structured.shapes import Shape
from pilothouse.machinery.structured.validation import SchemaMismatch, validate

_APPLY: Final = "ApplyConfiguration"
_TEST_FAILED: Final = ": test failed"


class Mutator:
    """The compiled expressions of a mutating policy."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        compiler = Compiler(spec)
        self._variables = compiler.variables
        self._conditions = compiler.conditions(spec)
        self.mutations = [Mutation(compiler, each) for each in spec.get("mutations") or ()]

    def meets(self, inputs: Inputs) -> Meeting | None:
        """Whether a request meets the conditions; None if there are none."""
        return self._conditions.evaluate(inputs.bindings(namespace=False)) if self._conditions else None

    def evaluate(self, mutation: Mutation, inputs: Inputs) -> Any:
        """The value of a mutation's expression; raises MutationError."""
        if isinstance(mutation.program, str):
            raise MutationError(mutation.program)
        try:
            return Run(inputs.bindings(), self._variables, BUDGET).evaluate(mutation.program)
        except (ExpressionError, OutOfBudget) as error:
            raise MutationError(str(error)) from None


class Mutation:
    """One mutation of a policy."""

    __slots__ = ("applies", "program")

    def __init__(self, compiler: Compiler, raw: Mapping[str, Any]) -> None:
        self.applies = raw.get("patchType") == _APPLY
        part = raw.get("applyConfiguration" if self.applies else "jsonPatch") or {}
        wanted = OBJECT_TYPE if self.applies else list_of(JSON_PATCH_TYPE)
        self.program: Compiled = compiler.compile(part.get("expression", ""), wanted, patches=True)

    def change(self, obj: Object, value: Any, shape: Shape) -> Object:
        """The changed object; the one given stays as it is. Raises MutationError."""
        try:
            return _apply_configuration(shape, obj, value) if self.applies else _apply_patch(obj, value)
        except EvaluationError as error:
            raise MutationError(
                f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}"
            ) from None


def _apply_configuration(shape: Shape, obj: Object, value: Any) -> Object:
    _check_names(value, ("Object",))
    applied = {**to_native(value), "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    try:
        validate(shape, applied)
    except SchemaMismatch as error:
        why = f"error applying patch: failed to convert patch object to typed object: {error}"
        raise MutationError(why) from None
    atomic = _find_atomics(shape, applied, "")
    if atomic:
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise MutationError(f"error applying patch: invalid ApplyConfiguration: {why}")
    try:
        validate(shape, obj, allow_duplicates=True)
    except SchemaMismatch as error:
        why = f"error applying patch: failed to convert original object to typed object: {error}"
        raise MutationError(why) from None
    merged: Object = merge(shape, obj, applied)
    return merged


def _find_atomics(shape: Shape, value: Any, path: str) -> list[str]:
    """Paths of what a configuration would replace as a whole."""
    found: list[str] = []
    if isinstance(value, dict) and shape.map is not None:
        if shape.map.atomic:
            found.append(path)
        for key, item in value.items():
            inner = shape.map.fields.get(key)
            if inner is not None:
                found += _find_atomics(inner, item, f"{path}.{key}")
    elif isinstance(value, list) and shape.items is not None:
        if shape.items.atomic:
            found.append(path)
        for position, item in enumerate(value):
            found += _find_atomics(shape.items.item, item, f"{path}[{position}]")
    return found


def _apply_patch(obj: Object, value: Any) -> Object:
    operations = [_read_operation(each) for each in value]
    try:
        patched: Object = json_patch.apply(obj, operations)
    except json_patch.JsonPatchError as error:
        if str(error).endswith(_TEST_FAILED):
            return obj
        raise MutationError(f"JSON Patch: {error}") from None
    return patched


def _read_operation(patch: Mapping[str, Any]) -> dict[str, Any]:
    operation = {"op": patch.get("op", ""), "path": patch.get("path", "")}
    if patch.get("from"):
        operation["from"] = patch["from"]
    if "value" in patch:
        value = patch["value"]
        if isinstance(value, Message):
            _check_names(value, tuple(value.cel_type.name.split(".")))
        operation["value"] = to_json(value)
    return operation


def _check_names(value: Any, path: tuple[str, ...]) -> None:
    errs = misnamed(value, path)
    if errs:
        raise MutationError("type mismatch: " + "\n".join(errs))
