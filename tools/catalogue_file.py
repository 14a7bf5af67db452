"""Writes a file of the catalogue under a header that says what it is and how it was made.

JSON has no comments: there the header is the value of a key that is no resource's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pilothouse.machinery.objects import Object

SOURCE = Path(__file__).resolve().parent.parent / "src" / "pilothouse"
FOLDER = SOURCE / "apis" / "catalogue"
RELEASE = "1.37"
HEADERS = {
    "types.txt": (
        "Built-in types: a block a type, a line a field; apis/types.py explains the words.",
        "tools/make_types.py from the struct tags and OpenAPI v3 documents",
    ),
    "enums.txt": (
        "Fields that hold one of a few values: the type, the field, its values; read by apis/enumerations.py.",
        "tools/make_enums.py from the generated OpenAPI definitions",
    ),
    "gates.txt": (
        "Feature gates: name, stage, default, whether it is locked, what it needs; read by apis/gates.py.",
        "tools/make_gates.py from the declarations of feature gates",
    ),
    "gate_history.txt": (
        "Feature gates in versions that can be emulated: name, since when, as in gates.txt; read by apis/gates.py.",
        "tools/make_gates.py from the declarations of feature gates",
    ),
    "introduced.txt": (
        "Resources that are younger than the oldest version to emulate: group version, kind, since when.",
        "tools/make_introduced.py from the life cycles of types",
    ),
    "resources.txt": (
        "Groups, versions, resources and subresources in discovery's order; read by apis/resources.py.",
        "tools/make_resources.py from the discovery documents, keys in etcd and APIServices",
    ),
    "legacy_types.txt": (
        "Types of versions that are served no more and that types.txt lacks; read when such a version is switched on.",
        "tools/make_legacy.py from the struct tags of the predecessors",
    ),
    "legacy_resources.txt": (
        "Versions, resources and subresources that are served no more, with their ends; read by apis/resources.py.",
        "tools/make_legacy.py from the discovery documents of the predecessors",
    ),
    "bootstrap_policy.json": (
        "Roles and bindings of a fresh server, in the order of creation; read by authz/rbac/bootstrap_policy.py.",
        "tools/make_rbac_policy.py from the objects of a fresh server",
    ),
    "static_objects.json": (
        "Objects of a fresh server that depend on no flag; read by controlplane/bootstrap/static_objects.py.",
        "tools/make_bootstrap.py from the objects of a fresh server",
    ),
}


def header(name: str) -> str:
    """The comment lines at the top of a file."""
    return "".join(f"# {line}\n" for line in _lines(name))


def _lines(name: str) -> tuple[str, str]:
    what, how = HEADERS[name]
    return what, f"Made by {how} of Kubernetes {RELEASE}: not to be edited; see docs/next-release.md."


def write(name: str, content: str) -> int:
    """Write a file anew; its size in bytes."""
    file = FOLDER / name
    file.write_text(header(name) + content)
    return file.stat().st_size


def write_objects(path: Path, content: Mapping[str, Sequence[Object]]) -> None:
    """Write objects by resource, one a line, so that they can be compared from release to release."""
    blocks = [f'"$comment":{json.dumps(" ".join(_lines(path.name)))}'] if path.name in HEADERS else []
    for resource, objects in content.items():
        lines = ",\n".join(json.dumps(obj, separators=(",", ":")) for obj in objects)
        blocks.append(f'"{resource}":[\n{lines}\n]')
    path.write_text("{" + ",\n".join(blocks) + "}\n")
