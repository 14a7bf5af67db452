"""Checks a validating policy's expressions against the types of the resources it matches.

Enforcing knows nothing of types: this only tells the author, in the policy's status, what cannot be right. Rules with
wildcards say nothing about types and are passed over, as is what nobody serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pilothouse.admission.versions import ServedVersions
from pilothouse.apis import types
from pilothouse.cel.issues import CompileError
from pilothouse.cel.policies import typed_environment
from pilothouse.cel.schema_types import Declarations
from pilothouse.cel.types import DYN, Type
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.openapi import schemas
from pilothouse.openapi.naming import model_name

Warnings = list[dict[str, str]]
_MOST_TYPES: Final = 10
_OBJECT_META: Final = "meta.v1.ObjectMeta"


class TypeChecker:
    """Checks policies on one server."""

    def __init__(self, served: ServedVersions) -> None:
        self._served = served

    def check(self, spec: Mapping[str, Any]) -> Warnings:
        """What is wrong with a policy's expressions, by their fields."""
        params, params_type = self._declare_params(spec.get("paramKind"))
        subjects = []
        for kind in self.kinds(spec):
            declared = self._declare(kind)
            if declared is not None:
                subjects.append((kind, _Subject(declared, params, params_type, spec.get("variables") or ())))
        warnings: Warnings = []
        for field, text in _expressions(spec):
            found = [f"{kind}: {issue}\n" for kind, subject in subjects if (issue := subject.check(text))]
            if found:
                warnings.append({"fieldRef": field, "warning": "\n".join(found)})
        return warnings

    def kinds(self, spec: Mapping[str, Any]) -> list[GroupVersionKind]:
        """The kinds that a policy names without wildcards, in order; not more than a few of each rule."""
        found: set[GroupVersionKind] = set()
        for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
            for count, kind in enumerate(self._kinds_of(rule), 1):
                found.add(kind)
                if count == _MOST_TYPES:
                    return sorted(found)
        return sorted(found)

    def _kinds_of(self, rule: Mapping[str, Any]) -> Iterator[GroupVersionKind]:
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in each for each in (*groups, *versions)):
            return
        resources = sorted(each for each in rule.get("resources") or () if "*" not in each and "/" not in each)
        for group in sorted(groups):
            for version in sorted(versions):
                for name in resources:
                    for row in self._served.find(group, version, name):
                        yield row.gvk

    def _declare_params(self, kind: Mapping[str, str] | None) -> tuple[Declarations, Type | None]:
        if kind is None:
            return Declarations(), None
        group, _, version = kind.get("apiVersion", "").rpartition("/")
        declared = self._declare(GroupVersionKind(group, version, kind.get("kind", "")))
        return declared if declared is not None else (Declarations(), DYN)

    def _declare(self, kind: GroupVersionKind) -> tuple[Declarations, Type] | None:
        schema = self._schema_of(kind)
        if schema is None:
            return None
        found = Declarations()
        declared = found.declare(schema, resource=True, name=kind.kind)
        return found, declared.type if declared is not None else DYN

    def _schema_of(self, kind: GroupVersionKind) -> Object | None:
        struct = types.find_kind(kind)
        if struct is not None:
            return _resolve({"$ref": schemas.V3.prefix + model_name(struct.name)}, ())
        definitions = self._served.definitions
        definition = definitions.of_kind(kind) if definitions is not None else None
        if definition is None:
            return None
        schema = definition.schema(kind.version)
        metadata = _resolve({"$ref": schemas.V3.prefix + model_name(_OBJECT_META)}, ())
        named = {"kind": {"type": "string"}, "apiVersion": {"type": "string"}, "metadata": metadata}
        return {"type": "object", **schema, "properties": {**(schema.get("properties") or {}), **named}}


class _Subject:
    """One kind that a policy matches, with the policy's variables as they are typed for it."""

    def __init__(
        self,
        declared: tuple[Declarations, Type],
        params: Declarations,
        params_type: Type | None,
        variables: Iterable[Mapping[str, str]],
    ) -> None:
        self._declared, self._params, self._params_type = declared, params, params_type
        self._variables: dict[str, Type] = {}
        for variable in variables:
            self._variables[variable.get("name", "")] = self._type_of(variable.get("expression", ""))

    def check(self, text: str) -> str:
        """What is wrong with an expression, empty if nothing is."""
        try:
            self._compile(text)
        except CompileError as error:
            return str(error)
        return ""

    def _type_of(self, text: str) -> Type:
        try:
            return self._compile(text)
        except CompileError:
            return DYN

    def _compile(self, text: str) -> Type:
        provider, kind = self._declared
        variables = dict(self._variables)
        return typed_environment(kind, self._params_type, variables, (provider, self._params)).compile(text).type


def _expressions(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for position, validation in enumerate(spec.get("validations") or ()):
        field = f"spec.validations[{position}]"
        yield f"{field}.expression", validation.get("expression", "")
        if validation.get("messageExpression"):
            yield f"{field}.messageExpression", validation["messageExpression"]


def _resolve(schema: Object, within: tuple[str, ...]) -> Object:
    """A schema with all it refers to in place; what contains itself is an object of which nothing is known."""
    parts: list[Object] = schema.get("allOf") or []
    ref = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
    if ref is not None:
        if ref in within:
            return {"type": "object"}
        within = (*within, ref)
        schema = schemas.definition(ref.removeprefix(schemas.V3.prefix), schemas.V3) or {}
    resolved = dict(schema)
    if resolved.get("format") == "int-or-string":
        resolved["x-kubernetes-int-or-string"] = True
    if "properties" in schema:
        resolved["properties"] = {name: _resolve(each, within) for name, each in schema["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            resolved[inner] = _resolve(schema[inner], within)
    return resolved
