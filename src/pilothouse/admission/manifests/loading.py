"""From manifest files to objects: decoded strictly, defaulted and validated as the API would, and fit for files.

What is in a file may not depend on what is in the API: webhooks are reached by URL, policies take no params, bindings
are of policies in the same folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from pilothouse.admission.manifests.files import Document, ManifestError, read_documents
from pilothouse.apis import types
from pilothouse.apis.resources import Resource, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.machinery import yaml_codec
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.unknown import unknown_fields

SUFFIX: Final = ".static.k8s.io"
_VERSION: Final = GroupVersion("admissionregistration.k8s.io", "v1")


@dataclass(slots=True)
class Loaded:
    """What a folder holds."""

    objects: dict[str, list[Object]] = field(default_factory=dict)
    """By kind, in the order of their names."""
    hash: str = ""


def load_manifests(folder: str, kinds: tuple[str, ...]) -> Loaded:
    """Read a folder for one plug-in, whose kinds these are. Raises ManifestError."""
    documents, digest = read_documents(folder)
    loader = _Loader(kinds)
    for document in documents:
        try:
            loader.take(document)
        except ManifestError as error:
            raise ManifestError(f"error loading {document.path}: {error}") from None
    loader.check_references()
    for objects in loader.objects.values():
        objects.sort(key=lambda obj: obj["metadata"]["name"])
    return Loaded(loader.objects, digest)


class _Loader:
    def __init__(self, kinds: tuple[str, ...]) -> None:
        rows = {row.kind: row for row in table()[_VERSION].resources}
        self._rows: dict[str, Resource] = {kind: rows[kind] for kind in kinds}
        self._seen: dict[str, dict[str, str]] = {kind: {} for kind in kinds}
        self.objects: dict[str, list[Object]] = {kind: [] for kind in kinds}

    def take(self, document: Document) -> None:
        """Take all objects of a document."""
        for kind, raw in self._objects_of(_parse(document.data)):
            obj = self._read(kind, raw)
            self._check(kind, obj, document.path)
            self.objects[kind].append(obj)

    def _objects_of(self, value: Any) -> Iterator[tuple[str, Object]]:
        kind, version = _type_of(value)
        if (kind, version) == ("List", "v1"):
            for item in value.get("items") or ():
                yield from self._objects_of(item)
        elif version != str(_VERSION):
            if version.startswith(f"{_VERSION.group}/"):
                raise ManifestError(f"unsupported resource type *{version.rpartition('/')[2]}.{kind}")
            raise ManifestError(f"no kind {quote(kind)} is registered for version {quote(version)}")
        elif kind in self._rows:
            yield kind, value
        elif kind.removesuffix("List") in self._rows:
            for item in value.get("items") or ():
                yield kind.removesuffix("List"), {**item, "kind": kind.removesuffix("List"), "apiVersion": version}
        else:
            raise ManifestError(f"unsupported resource type *v1.{kind}")

    def _read(self, kind: str, raw: Object) -> Object:
        row = self._rows[kind]
        struct = types.struct(row.type_name)
        unknown = [f"unknown field {quote(path)}" for path in unknown_fields(struct, raw)]
        if unknown:
            raise ManifestError(f"strict decoding error: {', '.join(unknown)}")
        try:
            obj, _ = decode(struct, raw)
        except DecodeError as error:
            raise ManifestError(str(error)) from None
        strategy = strategy_for(row)
        strategy.default(obj)
        errs = strategy.errors(obj, None)  # type: ignore[attr-defined]
        if errs:
            name = quote((obj.get("metadata") or {}).get("name", ""))
            raise ManifestError(f"{kind} {name}: {aggregate(str(err) for err in errs)}")
        return obj

    def _check(self, kind: str, obj: Object, path: str) -> None:
        name, seen = (obj.get("metadata") or {}).get("name", ""), self._seen[kind]
        if not name:
            raise ManifestError(f"resource in file {quote(path)} must have a name")
        if not name.endswith(SUFFIX):
            raise ManifestError(f"{quote(name)} in file {quote(path)} must have a name ending with {quote(SUFFIX)}")
        if name in seen:
            raise ManifestError(
                f"duplicate name {quote(name)} found in file {quote(path)} (previously seen in {quote(seen[name])})"
            )
        seen[name] = path
        if "webhooks" in obj or kind.endswith("WebhookConfiguration"):
            _check_clients(obj, name, path)
        elif kind.endswith("Binding"):
            _check_binding(obj.get("spec") or {}, name)
        elif (obj.get("spec") or {}).get("paramKind") is not None:
            raise ManifestError(f"{kind} {quote(name)}: spec.paramKind is not supported for static manifests")

    def check_references(self) -> None:
        """Every binding must be of a policy that is here too."""
        policies = {obj["metadata"]["name"] for kind in self._rows for obj in self.objects[kind]}
        for kind, objects in self.objects.items():
            for obj in objects if kind.endswith("Binding") else ():
                policy = obj["spec"]["policyName"]
                if policy not in policies:
                    raise ManifestError(
                        f"binding {quote(obj['metadata']['name'])} references policy {quote(policy)} "
                        "which does not exist in the manifest directory"
                    )


def _parse(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return yaml_codec.load(data, strict=True)
    except ValueError as error:
        raise ManifestError(str(error)) from None


def _type_of(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict):
        raise ManifestError("couldn't get version/kind; json parse error: the document is no object")
    kind, version = value.get("kind"), value.get("apiVersion")
    for title, found in (("Kind", kind), ("apiVersion", version)):
        if not isinstance(found, str) or not found:
            raise ManifestError(f"Object '{title}' is missing in '{orjson.dumps(value).decode()}'")
    return str(kind), str(version)


def _check_clients(obj: Object, name: str, path: str) -> None:
    for hook in obj.get("webhooks") or ():
        client = hook.get("clientConfig") or {}
        where = f"webhook {quote(hook.get('name', ''))} in {quote(name)} (file {quote(path)})"
        if client.get("service") is not None:
            raise ManifestError(
                f"{where}: clientConfig.service is not supported for static manifests; use clientConfig.url instead"
            )
        if not client.get("url"):
            raise ManifestError(f"{where}: clientConfig.url is required for static manifests")


def _check_binding(spec: Object, name: str) -> None:
    policy = spec.get("policyName", "")
    if not policy:
        raise ManifestError(f"binding {quote(name)} must reference a policy (spec.policyName)")
    if not policy.endswith(SUFFIX):
        raise ManifestError(f"binding {quote(name)}: spec.policyName {quote(policy)} must end with {quote(SUFFIX)}")
    if spec.get("paramRef") is not None:
        raise ManifestError(f"binding {quote(name)}: spec.paramRef is not supported for static manifests")
