"""Write what the package and its tests know of a fresh API server's own objects.

    python tools/make_bootstrap.py BOOTSTRAP_OBJECTS.json

The input maps resource names to lists of objects as served. Two files come out of it, one object a line, so that they
can be compared from release to release:

    controlplane/bootstrap/static_objects.json   the objects that depend on no flag, as they are to be created
    tests/server/bootstrap_objects.json          all objects, without what differs from server to server
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from catalogue_file import SOURCE, write_objects
from pilothouse.machinery.objects import Object

STATIC = SOURCE / "controlplane" / "bootstrap" / "static_objects.json"
RECORDED = SOURCE.parents[1] / "tests" / "server" / "bootstrap_objects.json"
STATIC_RESOURCES = ("prioritylevelconfigurations", "flowschemas", "priorityclasses")
OF_ONE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
NOT_WRITTEN = ("apiVersion", "kind", "metadata", "status")


def main() -> None:
    """Read, reduce, write."""
    served: dict[str, list[Object]] = json.loads(Path(sys.argv[1]).read_text())
    in_order = {resource: sorted(served[resource], key=revision) for resource in STATIC_RESOURCES}
    write_objects(STATIC, {resource: [as_created(obj) for obj in objects] for resource, objects in in_order.items()})
    write_objects(RECORDED, {resource: [as_recorded(obj) for obj in objects] for resource, objects in served.items()})


def revision(obj: Object) -> int:
    """When the object was written last."""
    return int(obj["metadata"]["resourceVersion"])


def as_created(obj: Object) -> Object:
    """The object as its creator sent it."""
    kept = {key: obj["metadata"][key] for key in ("name", "annotations") if key in obj["metadata"]}
    return {"metadata": kept, **{key: value for key, value in obj.items() if key not in NOT_WRITTEN}}


def as_recorded(obj: Object) -> Object:
    """The object without what only this one server could have, and with certificates left out."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in OF_ONE_SERVER}
    recorded = {**obj, "metadata": metadata}
    for condition in recorded.get("status", {}).get("conditions", ()):
        condition.pop("lastTransitionTime", None)
    if "data" in recorded:
        recorded["data"] = {k: "" if "-ca-file" in k else v for k, v in recorded["data"].items()}
    return recorded


if __name__ == "__main__":
    main()
