"""Write the RBAC bootstrap policy of the package from the objects that a fresh API server makes.

    python tools/make_rbac_policy.py BOOTSTRAP_OBJECTS.json

The input maps resource names to lists of objects as served. Only what the policy says is kept; the order is that of
creation. One object a line, so that the output can be compared from release to release.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from catalogue_file import SOURCE, write_objects
from pilothouse.machinery.objects import Object

OUTPUT = SOURCE / "authz" / "rbac" / "bootstrap_policy.json"
RESOURCES = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
METADATA = ("name", "namespace", "labels", "annotations")
FIELDS = ("aggregationRule", "rules", "subjects", "roleRef")


def strip(obj: Object) -> Object:
    """The object without what the server adds to it."""
    metadata = {key: obj["metadata"][key] for key in METADATA if key in obj["metadata"]}
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata,
        **{key: obj[key] for key in FIELDS if key in obj},
    }


def main() -> None:
    """Read, strip, write."""
    served = json.loads(Path(sys.argv[1]).read_text())
    write_objects(OUTPUT, {resource: [strip(obj) for obj in in_order(served[resource])] for resource in RESOURCES})


def in_order(objects: list[Object]) -> list[Object]:
    """As they were created."""
    return sorted(objects, key=lambda obj: int(obj["metadata"]["resourceVersion"]))


if __name__ == "__main__":
    main()
