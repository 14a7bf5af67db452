"""Write the catalogue of built-in types (src/pilothouse/apis/catalogue/types.txt) from facts of a Kubernetes release.

    python tools/make_types.py GO_STAGING_DIR OPENAPI_V3_DIR

Field order, Go types, pointers, omitempty, protobuf numbers and patch strategies come from the struct tags under
GO_STAGING_DIR (``staging/src/k8s.io`` of a kubernetes checkout); list kinds, required fields and schema defaults from
the OpenAPI documents in OPENAPI_V3_DIR. Only such facts are written: one line a field, no descriptions.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from catalogue_file import write

META = "k8s.io/apimachinery/pkg/apis/meta/v1"
SPECIAL = {
    f"{META}.Time": "Time",
    f"{META}.MicroTime": "MicroTime",
    f"{META}.Duration": "Duration",
    f"{META}.FieldsV1": "FieldsV1",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "Quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "RawExtension",
    "k8s.io/apimachinery/pkg/runtime.Object": "RawExtension",
    "k8s.io/apimachinery/pkg/runtime.Unknown": "RawExtension",
    "k8s.io/apimachinery/pkg/types.UID": "types.UID=string",
    "k8s.io/apimachinery/pkg/types.NodeName": "types.NodeName=string",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": "JSON",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": "SchemaOrBool",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray": "SchemaOrArray",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "SchemaOrStringArray",
}
SCALARS = {"string", "bool", "int", "int32", "int64", "uint64", "float64", "uint8", "byte", "rune"}
SKIPPED_TYPES = {"TypeMeta"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.S | re.M)
NAMED = re.compile(r"^type (\w+) =? ?((?:map\[|\[|\*|\w)[^\n{(]*)$", re.M)
EMPTY = re.compile(r"^type (\w+) struct ?\{ *\}$", re.M)
GROUPED = re.compile(r"^type \(\n(.*?)^\)", re.S | re.M)
FIELD = re.compile(r"^\s*(?:([A-Z]\w*)\s+)?([^\s`]+)\s+`([^`]*)`", re.M)
MARKER = re.compile(r"^\s*// \+(listType|listMapKey|mapType|optional)\b=?(\w*)", re.M)
MARKED = re.compile(r"((?:^[ \t]*//[^\n]*\n)+)(^[ \t]*[A-Z]\w*[ \t]+[^\s`]+[ \t]+`[^`\n]*)`", re.M)
IMPORT = re.compile(r'^\s*(?:import\s+)?(\w+)?\s*"([^"]+)"', re.M)


def _into_tag(match: re.Match[str]) -> str:
    """A field with the markers of the comment above it in its tag."""
    markers = ",".join(f"{key}={value}" for key, value in MARKER.findall(match[1]))
    return f'{match[1]}{match[2]} marked:"{markers}"`' if markers else match[0]


class Package:
    """One Go package of API types: its structs and named types, unresolved."""

    def __init__(self, path: str, folder: Path) -> None:
        self.path = path
        self.structs: dict[str, str] = {}
        self.named: dict[str, str] = {}
        self.imports: dict[str, dict[str, str]] = {}
        for file in sorted(folder.glob("*.go")):
            if file.name.endswith("_test.go") or file.name.startswith(("zz_generated", "generated.pb")):
                continue
            self._read(file.read_text())

    def _read(self, raw: str) -> None:
        raw = MARKED.sub(_into_tag, raw)
        head = raw.split("\ntype ", 1)[0]
        imports = {alias or p.rsplit("/", 1)[-1]: p for alias, p in IMPORT.findall(head)}
        text = COMMENT.sub("", raw)
        for block in GROUPED.findall(text):
            text += "\n" + re.sub(r"^\t(\w)", r"type \1", block, flags=re.M)
        for name, body in STRUCT.findall(text):
            self.structs[name] = body
            self.imports[name] = imports
        for name in EMPTY.findall(text):
            self.structs[name] = ""
            self.imports[name] = imports
        for name, target in NAMED.findall(text):
            if name not in self.structs and target.split()[0] not in ("struct", "interface", "func"):
                self.named[name] = target.strip()
                self.imports[name] = imports


def short(path: str) -> str:
    """core.v1 for k8s.io/api/core/v1, meta.v1 for k8s.io/apimachinery/pkg/apis/meta/v1 …"""
    parts = path.split("/")
    return f"{parts[-2]}.{parts[-1]}"


class Source:
    """All packages, and how a Go type expression reads in the catalogue."""

    def __init__(self, staging: Path) -> None:
        self.packages: dict[str, Package] = {}
        folders = [
            *staging.glob("api/*/v*"),
            staging / "apimachinery/pkg/apis/meta/v1",
            staging / "apimachinery/pkg/apis/meta/v1beta1",
            staging / "apiextensions-apiserver/pkg/apis/apiextensions/v1",
            staging / "apiextensions-apiserver/pkg/apis/apiextensions/v1beta1",
            staging / "kube-aggregator/pkg/apis/apiregistration/v1",
            staging / "kube-aggregator/pkg/apis/apiregistration/v1beta1",
            staging / "apiserver/pkg/apis/audit/v1",
        ]
        for folder in sorted(folders):
            if folder.is_dir():
                path = "k8s.io/" + str(folder.relative_to(staging))
                self.packages[path] = Package(path, folder)

    def resolve(self, package: Package, owner: str, expr: str) -> str:
        """Catalogue text of a Go type; a named scalar reads `v1.PodPhase=string`."""
        if expr.startswith("*"):
            return "*" + self.resolve(package, owner, expr[1:])
        if expr in ("[]byte", "[]uint8"):
            return "bytes"
        if expr.startswith("[]"):
            return "[]" + self.resolve(package, owner, expr[2:])
        if expr.startswith("map["):
            key, value = expr[4:].split("]", 1)
            key = self.resolve(package, owner, key)
            return f"map[{key}]" + self.resolve(package, owner, value)
        if expr == "interface{}":
            return "JSON"
        if expr in SCALARS:
            return {"int": "int64", "byte": "uint8"}.get(expr, expr)
        alias, dot, name = expr.rpartition(".")
        path = package.imports[owner][alias] if dot else package.path
        full = f"{path}.{name}"
        full = full.replace("apiextensions/v1beta1.JSON", "apiextensions/v1.JSON") if name.startswith("JSON") else full
        if full in SPECIAL:
            return SPECIAL[full]
        target = self.packages[path]
        if name in target.structs:
            return f"{short(path)}.{name}"
        base = self.resolve(target, name, target.named[name])
        return f"{path.rsplit('/', 1)[-1]}.{name}={base}"


def openapi_name(path: str, name: str) -> str:
    head, _, tail = path.partition("/")
    host = ".".join(reversed(head.split(".")))
    return f"{host}.{tail.replace('/', '.')}.{name}"


def tag(tags: str, key: str) -> str:
    match = re.search(rf'(?:^|\s){key}:"([^"]*)"', tags)
    return match.group(1) if match else ""


def schema_flags(name: str, schema: dict[str, Any] | None, *, implied: bool) -> list[str]:
    """What OpenAPI says about a field. ``implied``: a zero default goes without saying, as Go always writes it."""
    if schema is None:
        return []
    flags = []
    prop = schema.get("properties", {}).get(name, {})
    if name in schema.get("required", ()):
        flags.append("req")
    if "x-kubernetes-list-type" in prop:
        keys = ",".join(prop.get("x-kubernetes-list-map-keys", ()))
        flags.append("list=" + prop["x-kubernetes-list-type"] + (f":{keys}" if keys else ""))
    if "x-kubernetes-map-type" in prop:
        flags.append("map=" + prop["x-kubernetes-map-type"])
    if prop.get("default") not in (None, {}, *(("", 0, False) if implied else ())):
        flags.append("def=" + json.dumps(prop["default"], separators=(",", ":")))
    return flags


def marker_flags(tags: str, kind: str) -> list[str]:
    """The same from the markers above a field of a kind, for types that no document describes."""
    markers = [marker.partition("=")[::2] for marker in tag(tags, "marked").split(",") if marker]
    keys = ",".join(value for key, value in markers if key == "listMapKey")
    flags = [f"list={value}" + (f":{keys}" if keys else "") for key, value in markers if key == "listType"]
    if not kind.rpartition("=")[2].startswith("[]"):
        flags = []
    return flags + [f"map={value}" for key, value in markers if key == "mapType"]


def is_required(tags: str, options: list[str]) -> bool:
    """Whether a field must be given, for types that no document describes."""
    return not {"omitempty", "omitzero"}.intersection(options) and "optional=" not in tag(tags, "marked")


def field_line(source: Source, package: Package, owner: str, match: re.Match[str], schema: Any) -> str | None:
    go_name, expr, tags = match.groups()
    json_tag = tag(tags, "json")
    name, *options = json_tag.split(",")
    if name == "-":
        return None
    number = re.search(r"^\w+,(\d+),", tag(tags, "protobuf"))
    where = number.group(1) if number else "0"
    if "inline" in options or (go_name is None and not name):
        if expr.rpartition(".")[2] in SKIPPED_TYPES:
            return "  @object"
        return f"  @inline {source.resolve(package, owner, expr)} {where}"
    flags = [o[0:1] + ("z" if o == "omitzero" else "") for o in options if o in ("omitempty", "omitzero")]
    if tag(tags, "patchStrategy"):
        flags.append("patch=" + tag(tags, "patchStrategy"))
    if tag(tags, "patchMergeKey"):
        flags.append("key=" + tag(tags, "patchMergeKey"))
    if schema is None:
        flags += ["req"] if is_required(tags, options) else []
        flags += marker_flags(tags, source.resolve(package, owner, expr))
    flags += schema_flags(name, schema, implied="omitempty" not in options and not expr.startswith("*"))
    proto_name = re.search(r"name=(\w+)", tag(tags, "protobuf"))
    if proto_name and proto_name.group(1) != name:
        flags.append("proto=" + proto_name.group(1))
    return " ".join([f"  {name}", source.resolve(package, owner, expr), where, *flags])


def add_inlined(source: Source, schemas: dict[str, Any]) -> None:
    """Types that are only ever inlined have no schema of their own: their fields are in their owner's."""
    for path, package in source.packages.items():
        for name, body in package.structs.items():
            owner = schemas.get(openapi_name(path, name))
            for match in FIELD.finditer(body):
                go_name, expr, _ = match.groups()
                if owner is not None and go_name is None and "." not in expr:
                    known = {key: owner[key] for key in ("properties", "required") if key in owner}
                    schemas.setdefault(openapi_name(path, expr.lstrip("*")), known)


def main() -> None:
    staging, openapi = Path(sys.argv[1]), Path(sys.argv[2])
    schemas: dict[str, Any] = {}
    for file in sorted(openapi.glob("*.json")):
        schemas.update(json.loads(file.read_text()).get("components", {}).get("schemas", {}))
    source = Source(staging)
    add_inlined(source, schemas)
    blocks = []
    for path, package in sorted(source.packages.items()):
        for name, body in sorted(package.structs.items()):
            if f"{path}.{name}" in SPECIAL or name in SKIPPED_TYPES or (body.strip() and "json:" not in body):
                continue
            schema = schemas.get(openapi_name(path, name))
            flags = []
            if schema and "x-kubernetes-map-type" in schema:
                flags.append("map=" + schema["x-kubernetes-map-type"])
            if schema and "x-kubernetes-unions" in schema:
                flags.append("unions=" + json.dumps(schema["x-kubernetes-unions"], separators=(",", ":")))
            lines = [" ".join([f"{short(path)}.{name}", *flags])]
            for match in FIELD.finditer(body):
                line = field_line(source, package, name, match, schema)
                if line:
                    lines.append(line)
            blocks.append("\n".join(lines))
    size = write("types.txt", "\n\n".join(blocks) + "\n")
    print(f"{len(blocks)} types, {size} bytes")


if __name__ == "__main__":
    main()
