"""What can be done to a resource, as OpenAPI describes it: one Operation a path and method, from a row of the table.

Both versions of OpenAPI are written from these. The order of operations has no meaning; documents are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pilothouse.apis import types
from pilothouse.apis.resources import Resource, Subresource, Version
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind
from pilothouse.openapi import parameters as params
from pilothouse.openapi.naming import article, model_name
from pilothouse.openapi.parameters import Parameter

STRING: Final = "string"
ANY: Final = ("*/*",)
_LIST: Final = "meta.v1.ListOptions"
_DELETE: Final = "meta.v1.DeleteOptions"
_STATUS: Final = model_name("meta.v1.Status")
_EVENT: Final = model_name("meta.v1.WatchEvent")
_BY_LIST: Final = ". deprecated: use the 'watch' parameter with a list operation instead"
_BY_FIELD: Final = ", filtered to a single item with the 'fieldSelector' parameter."
_STREAMS: Final = ("GET", "POST")
_PROXY: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_CONNECTIONS: Final = {"attach": _STREAMS, "exec": _STREAMS, "portforward": _STREAMS, "proxy": _PROXY}
# Kinds whose DELETE is documented to answer with the object. Namespaces answer so too, but are not documented to.
_RETURNS_DELETED: Final = {
    "": frozenset({
        "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas", "serviceaccounts",
        "services",
    }),
    "storage.k8s.io": frozenset({
        "csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses",
    }),
}  # fmt: skip


@dataclass(slots=True, frozen=True)
class Response:
    """An answer: the name of its model, ``string``, or nothing at all."""

    code: int
    description: str
    model: str


@dataclass(slots=True)
class Operation:
    """One method of one path. ``name`` is the operation's before group and version are put into it."""

    path: str
    method: str
    name: str
    description: str
    parameters: list[Parameter]
    responses: list[Response]
    produces: tuple[str, ...]
    consumes: tuple[str, ...] = ANY
    body: str = ""
    body_required: bool = True
    gvk: GroupVersionKind | None = None
    action: str = ""


@dataclass(slots=True, frozen=True)
class MediaTypes:
    """The forms objects come in. CBOR is there only behind its feature gate."""

    cbor: bool = False

    @property
    def objects(self) -> tuple[str, ...]:
        plain = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
        return (*plain, "application/cbor") if self.cbor else plain

    @property
    def streams(self) -> tuple[str, ...]:
        plain = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
        return (*plain, "application/cbor-seq") if self.cbor else plain

    @property
    def patches(self) -> tuple[str, ...]:
        merges = ("application/merge-patch+json", "application/strategic-merge-patch+json")
        plain = ("application/json-patch+json", *merges, "application/apply-patch+yaml")
        return (*plain, "application/apply-patch+cbor") if self.cbor else plain


def version_operations(version: Version, media: MediaTypes) -> Iterator[Operation]:
    """Everything below ``/apis/GROUP/VERSION/``, that path included."""
    root = root_of(version.group_version)
    yield Operation(
        f"{root}/", "GET", "getAPIResources", "get available resources", [],
        ok(model_name("meta.v1.APIResourceList")), media.objects, media.objects,
    )  # fmt: skip
    for resource in version.resources:
        yield from _Writer(root, media, resource).resource()
        for subresource in resource.subresources:
            yield from _Writer(root, media, resource, subresource).subresource()


def root_of(gv: GroupVersion) -> str:
    """The path below which a group version lives."""
    return f"/apis/{gv}" if gv.group else f"/api/{gv}"


def ok(model: str) -> list[Response]:
    """The answers of an operation that can only succeed in one way."""
    return [Response(200, "OK", model)]


class _Writer:
    """The operations of one resource, or of one subresource."""

    def __init__(self, root: str, media: MediaTypes, resource: Resource, sub: Subresource | None = None) -> None:
        self.media = media
        self.row = resource
        self.kind = resource.kind
        self.sub = sub.name if sub else ""
        self.verbs = sub.verbs if sub else resource.verbs
        self.gvk = sub.kind if sub else resource.gvk
        self.model = _model_of(self.gvk)
        self.produced = STRING if sub and sub.name == "log" else self.model
        self.root = root
        namespaced = resource.namespaced
        self.scope = "Namespaced" if namespaced else ""
        self.collection_path = f"namespaces/{{namespace}}/{resource.name}" if namespaced else resource.name
        self.item_path = f"{self.collection_path}/{{name}}" + (f"/{sub.name}" if sub else "")
        self.collection_params = [params.NAMESPACE] if namespaced else []
        self.item_params = [*self.collection_params, params.name_of(self.gvk.kind)]

    def resource(self) -> Iterator[Operation]:
        verbs = self.verbs
        if "list" in verbs:
            yield self._list(self.collection_path, self.collection_params)
            if self.row.namespaced:
                yield self._list(self.row.name, [], everywhere=True)
        if "create" in verbs:
            yield self._create(self.collection_path, self.collection_params)
        if "deletecollection" in verbs:
            yield self._delete_collection()
        yield from self._item()
        if "delete" in verbs:
            yield self._delete()
        if "watch" in verbs:
            yield from self._watches()

    def subresource(self) -> Iterator[Operation]:
        methods = _CONNECTIONS.get(self.sub)
        if methods is None:
            if "create" in self.verbs:
                yield self._create(self.item_path, self.item_params)
            yield from self._item()
            return
        for method in methods:
            yield self._connect(method, self.item_path, self.item_params, "")
            if methods is _PROXY:
                yield self._connect(method, f"{self.item_path}/{{path}}", [*self.item_params, params.PATH], "WithPath")

    def _item(self) -> Iterator[Operation]:
        if "get" in self.verbs:
            yield self._get()
        if "update" in self.verbs:
            yield self._update()
        if "patch" in self.verbs:
            yield self._patch()

    def _make(
        self, verb: str, method: str, path: str, description: str, found: list[Parameter], responses: list[Response],
        *, action: str, suffix: str = "", everywhere: bool = False, streams: bool = False, pretty: bool = True,
    ) -> Operation:  # fmt: skip
        name = f"{verb}{'' if everywhere else self.scope}{self.kind}{self.sub.title()}{suffix}"
        if everywhere:
            name += "ForAllNamespaces"
        produces = self.media.objects + self.media.streams if streams else self.media.objects
        return Operation(
            f"{self.root}/{path}", method, name, description, [params.PRETTY, *found] if pretty else found, responses,
            produces, gvk=self.gvk, action=action,
        )  # fmt: skip

    def _of(self, one: str, several: str) -> str:
        """``one`` kind, or ``several`` with the subresource in front of it."""
        return several.replace("%s", self.sub) + self.kind if self.sub else one + self.kind

    def _list(self, path: str, own: list[Parameter], *, everywhere: bool = False) -> Operation:
        verb = "list or watch" if "watch" in self.verbs else "list"
        return self._make(
            "list", "GET", path, f"{verb} objects of kind {self.kind}", [*params.options(_LIST), *own],
            ok(self.model + "List"), action="list", everywhere=everywhere, streams=True,
        )  # fmt: skip

    def _create(self, path: str, own: list[Parameter]) -> Operation:
        a = article(self.kind)
        made = self._make(
            "create", "POST", path, self._of(f"create{a}", f"create %s of{a}"),
            [*params.options("meta.v1.CreateOptions"), *own],
            [*ok(self.produced), Response(201, "Created", self.produced), Response(202, "Accepted", self.produced)],
            action="post",
        )  # fmt: skip
        made.body = self.model
        return made

    def _get(self) -> Operation:
        is_log = self.sub == "log"
        found = [*params.options("core.v1.PodLogOptions"), *self.item_params] if is_log else self.item_params
        made = self._make(
            "read", "GET", self.item_path, self._of("read the specified ", "read %s of the specified "), found,
            ok(self.produced), action="get",
        )  # fmt: skip
        if is_log:
            made.produces = ("text/plain", *made.produces)
        return made

    def _update(self) -> Operation:
        made = self._make(
            "replace", "PUT", self.item_path, self._of("replace the specified ", "replace %s of the specified "),
            [*params.options("meta.v1.UpdateOptions"), *self.item_params],
            [*ok(self.produced), Response(201, "Created", self.produced)], action="put",
        )  # fmt: skip
        made.body = self.model
        return made

    def _patch(self) -> Operation:
        made = self._make(
            "patch", "PATCH", self.item_path,
            self._of("partially update the specified ", "partially update %s of the specified "),
            [*params.options("meta.v1.PatchOptions"), *self.item_params],
            [*ok(self.produced), Response(201, "Created", self.produced)], action="patch",
        )  # fmt: skip
        made.body, made.consumes = model_name("meta.v1.Patch"), self.media.patches
        return made

    def _delete(self) -> Operation:
        answer = self.produced if _returns_deleted(self.row) else _STATUS
        made = self._make(
            "delete", "DELETE", self.item_path, f"delete{article(self.kind)}{self.kind}",
            [*params.options(_DELETE), *self.item_params], [*ok(answer), Response(202, "Accepted", answer)],
            action="delete",
        )  # fmt: skip
        made.body, made.body_required = model_name(_DELETE), False
        return made

    def _delete_collection(self) -> Operation:
        listing = params.options(_LIST, ("watch", "allowWatchBookmarks"))
        made = self._make(
            "deletecollection", "DELETE", self.collection_path, f"delete collection of {self.kind}",
            [*params.options(_DELETE), *listing, *self.collection_params], ok(_STATUS), action="deletecollection",
        )  # fmt: skip
        made.body, made.body_required = model_name(_DELETE), False
        return made

    def _watches(self) -> Iterator[Operation]:
        text = f"watch changes to an object of kind {self.kind}{_BY_LIST}{_BY_FIELD}"
        found = [*params.options(_LIST), *self.item_params]
        yield self._make(
            "watch", "GET", f"watch/{self.item_path}", text, found, ok(_EVENT), action="watch", streams=True
        )
        if "list" not in self.verbs:
            return
        yield self._watch_list(self.collection_path, self.collection_params)
        if self.row.namespaced:
            yield self._watch_list(self.row.name, [], everywhere=True)

    def _watch_list(self, path: str, own: list[Parameter], *, everywhere: bool = False) -> Operation:
        text = f"watch individual changes to a list of {self.kind}{_BY_LIST}."
        return self._make(
            "watch", "GET", f"watch/{path}", text, [*params.options(_LIST), *own], ok(_EVENT),
            action="watchlist", suffix="List", everywhere=everywhere, streams=True,
        )  # fmt: skip

    def _connect(self, method: str, path: str, own: list[Parameter], suffix: str) -> Operation:
        made = self._make(
            f"connect{method.title()}", method, path, f"connect {method} requests to {self.sub} of {self.kind}",
            [*params.options(f"core.v1.{self.gvk.kind}"), *own], ok(STRING), action="connect", suffix=suffix,
            pretty=False,
        )  # fmt: skip
        made.produces = ANY
        return made


def _returns_deleted(resource: Resource) -> bool:
    if resource.group == "resource.k8s.io":
        return (resource.version, resource.name) != ("v1", "devicetaintrules")
    return resource.name in _RETURNS_DELETED.get(resource.group, ())


def _model_of(gvk: GroupVersionKind) -> str:
    found = types.find_kind(gvk)
    if found is None:
        raise KeyError(str(gvk))
    return model_name(found.name)
