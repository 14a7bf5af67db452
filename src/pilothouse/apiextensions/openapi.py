"""Custom resources in the OpenAPI documents: a source for each group version, read only when somebody asks.

Version 3 shows schemas as their authors wrote them. Version 2 cannot say all that, and old clients take what it says
too seriously: alternatives and defaults go, and places that may be null or keep unknown fields show nothing of what is
below them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from pilothouse.apiextensions.serving.definition import ServedDefinition
from pilothouse.apis.documentation import describe
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind
from pilothouse.openapi import parameters as params
from pilothouse.openapi.naming import article, model_name
from pilothouse.openapi.operations import Operation, Response, ok, root_of
from pilothouse.openapi.parameters import Parameter
from pilothouse.openapi.schemas import V2, V3, Dialect, Schema, definition, versions_of_clients

_MEDIA: Final = ("application/json", "application/yaml")
_PATCHES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_STATUS: Final = model_name("meta.v1.Status")
_SCALE: Final = model_name("autoscaling.v1.Scale")
_PATCH: Final = model_name("meta.v1.Patch")
_DELETE: Final = model_name("meta.v1.DeleteOptions")
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_BELOW: Final = ("items", "properties", "additionalProperties")
_NOT_IN_V2: Final = frozenset({"allOf", "oneOf", "anyOf", "not", "nullable", "default", *_BELOW})


def model_of(group: str, version: str, kind: str) -> str:
    """The model of a custom kind: ``com.example.v1.Widget``."""
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


class CustomVersionSource:
    """What is known about a group version of custom resources."""

    custom = True

    def __init__(self, gv: GroupVersion, served: Iterable[ServedDefinition]) -> None:
        self._gv = gv
        self._served = list(served)
        marks = (f"{each.crd['metadata']['uid']}/{each.crd['metadata'].get('generation')}" for each in self._served)
        self.version = " ".join(marks)

    @property
    def models(self) -> Collection[str]:
        return self._by_model().keys()

    def _by_model(self) -> dict[str, tuple[ServedDefinition, bool]]:
        found: dict[str, tuple[ServedDefinition, bool]] = {}
        for each in self._served:
            found[model_of(*self._gv, each.names["kind"])] = (each, False)
            found[model_of(*self._gv, each.names["listKind"])] = (each, True)
        return found

    def operations(self) -> Iterator[Operation]:
        for each in self._served:
            yield from _Writer(each, self._gv).operations()

    def definition(self, model: str, dialect: Dialect) -> Schema | None:
        own = self._by_model().get(model)
        if own is None:
            return definition(model, dialect, versions_of_clients() if dialect is V3 else None)
        served, is_list = own
        return _list_schema(served, self._gv, dialect) if is_list else _kind_schema(served, self._gv, dialect)


class _Writer:
    """The operations of one definition at one version."""

    def __init__(self, served: ServedDefinition, gv: GroupVersion) -> None:
        self._kind: str = served.names["kind"]
        self._gvk = GroupVersionKind(gv.group, gv.version, self._kind)
        self._model = model_of(*gv, self._kind)
        self._list_model = model_of(*gv, served.names["listKind"])
        row = served.resource(gv.version)
        self._subresources = {sub.name for sub in row.subresources}
        self._is_computed, self._verbs = not row.is_stored, row.verbs
        self._scope = "Namespaced" if served.namespaced else ""
        root = root_of(gv)
        self._everywhere = f"{root}/{served.plural}"
        self._collection = f"{root}/namespaces/{{namespace}}/{served.plural}" if served.namespaced else self._everywhere
        self._own = [params.NAMESPACE] if served.namespaced else []
        self._item_own = [*self._own, params.name_of(self._kind)]

    def operations(self) -> Iterator[Operation]:
        listing = list(params.options("meta.v1.ListOptions"))
        if self._scope:
            made = self._make("list", "GET", self._everywhere, "list", listing, ok(self._list_model))
            made.name = f"list{self._kind}ForAllNamespaces"
            yield made
        found = [*listing, *self._own]
        yield self._make("list", "GET", self._collection, "list", found, ok(self._list_model))
        if self._is_computed:
            if "get" in self._verbs:
                yield self._read("", self._model)
            return
        yield self._write("create", "POST", self._collection, "post", "meta.v1.CreateOptions", self._own, (201, 202))
        yield self._make("deletecollection", "DELETE", self._collection, "deletecollection", found, ok(_STATUS))
        yield from self._item("", self._model)
        yield self._delete()
        if "status" in self._subresources:
            yield from self._item("status", self._model)
        if "scale" in self._subresources:
            yield from self._item("scale", _SCALE)

    def _read(self, sub: str, model: str) -> Operation:
        path = f"{self._collection}/{{name}}" + (f"/{sub}" if sub else "")
        reading = [Parameter("resourceVersion", "query", "string", _version_text()), *self._item_own]
        return self._make("read", "GET", path, "get", reading, ok(model), sub)

    def _item(self, sub: str, model: str) -> Iterator[Operation]:
        path = f"{self._collection}/{{name}}" + (f"/{sub}" if sub else "")
        yield self._read(sub, model)
        yield self._write("replace", "PUT", path, "put", "meta.v1.UpdateOptions", self._item_own, (201,), sub, model)
        found = [*params.options("meta.v1.PatchOptions"), *self._item_own]
        patching = self._make("patch", "PATCH", path, "patch", found, ok(model), sub)
        patching.body, patching.consumes = _PATCH, _PATCHES
        yield patching

    def _write(
        self, verb: str, method: str, path: str, action: str, options: str, own: list[Parameter],
        codes: tuple[int, ...], sub: str = "", model: str = "",
    ) -> Operation:  # fmt: skip
        model = model or self._model
        titles = {201: "Created", 202: "Accepted"}
        answers = [*ok(model), *(Response(code, titles[code], model) for code in codes)]
        made = self._make(verb, method, path, action, [*params.options(options), *own], answers, sub)
        made.body = model
        return made

    def _delete(self) -> Operation:
        answers = [*ok(_STATUS), Response(202, "Accepted", _STATUS)]
        found = [*params.options("meta.v1.DeleteOptions"), *self._item_own]
        made = self._make("delete", "DELETE", f"{self._collection}/{{name}}", "delete", found, answers)
        made.body, made.body_required = _DELETE, False
        return made

    def _make(
        self, verb: str, method: str, path: str, action: str, found: list[Parameter], responses: list[Response],
        sub: str = "",
    ) -> Operation:  # fmt: skip
        return Operation(
            path, method, f"{verb}{self._scope}{self._kind}{sub.title()}", self._describe(verb, sub),
            [params.PRETTY, *found], responses, _MEDIA, _MEDIA, gvk=self._gvk, action=action,
        )  # fmt: skip

    def _describe(self, verb: str, sub: str) -> str:
        of = f" {sub} of" if sub else ""
        words = {
            "list": f"list{of} objects of kind ",
            "create": f"create{of}{article(self._kind)}",
            "delete": f"delete{of}{article(self._kind)}",
            "read": f"read{of} the specified ",
            "replace": f"replace{of} the specified ",
            "patch": f"partially update{of} the specified ",
            "deletecollection": "delete collection of ",
        }
        return words[verb] + self._kind


def _version_text() -> str:
    options = params.options("meta.v1.ListOptions")
    return next(each.description for each in options if each.name == "resourceVersion")


def _type_fields(dialect: Dialect) -> Schema:
    """The properties kind and apiVersion, with their documentation."""
    shown = definition(_STATUS, dialect) or {}
    return {key: shown["properties"][key] for key in ("apiVersion", "kind")}


def _reference(model: str, description: str, dialect: Dialect) -> Schema:
    reference = {"$ref": dialect.prefix + model_name(model)}
    if dialect is V3:
        return {"description": description, "allOf": [reference]}
    return {"description": description, **reference}


def _kind_schema(served: ServedDefinition, gv: GroupVersion, dialect: Dialect) -> Schema:
    source = served.versions.schemas[gv.version].source
    kind: Schema = {"group": gv.group, "version": gv.version, "kind": served.names["kind"]}
    closed = not source or (
        dialect is V2
        and (source.get("x-kubernetes-preserve-unknown-fields") or served.spec.get("preserveUnknownFields"))
    )
    if closed:
        shown: Schema = {"type": "object"}
    else:
        shown = _show_v3(source) if dialect is V3 else _show_v2(source)
        shown["properties"] = {
            **(shown.get("properties") or {}),
            **_type_fields(dialect),
            "metadata": _reference("meta.v1.ObjectMeta", describe("core.v1.ConfigMap", "metadata"), dialect),
        }
    shown["x-kubernetes-group-version-kind"] = [kind]
    return _with_selectable(shown, served, gv)


def _list_schema(served: ServedDefinition, gv: GroupVersion, dialect: Dialect) -> Schema:
    model = model_of(*gv, served.names["kind"])
    items = {
        "description": f"List of {served.plural}. More info: {_CONVENTIONS}",
        "type": "array",
        "items": {"$ref": dialect.prefix + model},
    }
    kind = {"group": gv.group, "version": gv.version, "kind": served.names["listKind"]}
    shown: Schema = {
        "description": f"{served.names['listKind']} is a list of {served.names['kind']}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_fields(dialect),
            "items": items,
            "metadata": _reference("meta.v1.ListMeta", describe("core.v1.PodList", "metadata"), dialect),
        },
        "x-kubernetes-group-version-kind": [kind],
    }
    return _with_selectable(shown, served, gv)


def _with_selectable(shown: Schema, served: ServedDefinition, gv: GroupVersion) -> Schema:
    fields = served.selectable_fields(gv.version)
    if fields:
        shown["x-kubernetes-selectable-fields"] = [{"fieldPath": name} for name in fields]
    return shown


def _show_v3(source: Schema) -> Schema:
    """The schema itself, with what its extensions imply written out."""
    shown = dict(source)
    if source.get("x-kubernetes-int-or-string"):
        _unfold(shown)
    _go_below(shown, source, _show_v3)
    if source.get("x-kubernetes-embedded-resource"):
        _embed(shown, V3)
    return shown


def _unfold(shown: Schema) -> None:
    all_of = shown.get("allOf") or []
    if shown.get("anyOf") == _INT_OR_STRING or (all_of and all_of[0].get("anyOf") == _INT_OR_STRING):
        return
    if shown.get("anyOf") is None:
        shown["anyOf"] = _INT_OR_STRING
    else:
        shown["allOf"] = [{"anyOf": _INT_OR_STRING}, *all_of]


def _show_v2(source: Schema) -> Schema:
    """What version 2 can say of the schema, and what its readers can take."""
    shown: Schema = {key: value for key, value in source.items() if key not in _NOT_IN_V2}
    preserves = source.get("x-kubernetes-preserve-unknown-fields")
    nullable = source.get("nullable")
    below: Schema = {key: source[key] for key in _BELOW if key in source}
    if preserves or nullable:
        below = {key: value for key, value in below.items() if key == "additionalProperties"}
    _go_below(shown, below, _show_v2)
    _drop_nullable(shown, below)
    untyped = (shown.get("type") == "array" and "items" not in shown) or (preserves and shown.get("type") == "object")
    if nullable or untyped:
        shown.pop("type", None)
    if source.get("x-kubernetes-embedded-resource") and not preserves:
        _embed(shown, V2)
    return shown


def _drop_nullable(shown: Schema, below: Schema) -> None:
    """What may be null cannot be said to be required."""
    additional = below.get("additionalProperties")
    if isinstance(additional, dict) and additional.get("nullable"):
        shown.pop("required", None)
        return
    properties: Schema = below.get("properties") or {}
    required = [name for name in shown.get("required") or () if not properties.get(name, {}).get("nullable")]
    if required:
        shown["required"] = required
    else:
        shown.pop("required", None)


def _go_below(shown: Schema, source: Schema, show: Any) -> None:
    if isinstance(source.get("items"), dict):
        shown["items"] = show(source["items"])
    if source.get("properties"):
        shown["properties"] = {key: show(value) for key, value in source["properties"].items()}
    additional = source.get("additionalProperties")
    if additional is not None:
        shown["additionalProperties"] = show(additional) if isinstance(additional, dict) else additional


def _embed(shown: Schema, dialect: Dialect) -> None:
    shown["properties"] = {
        **(shown.get("properties") or {}),
        **_type_fields(dialect),
        "metadata": _reference("meta.v1.ObjectMeta", describe("core.v1.ConfigMap", "metadata"), dialect),
    }
    required = list(shown.get("required") or ())
    shown["required"] = required + [key for key in ("kind", "apiVersion") if key not in required]
