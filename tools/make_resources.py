"""Write the table of built-in resources (src/pilothouse/apis/catalogue/resources.txt) from the facts of a release.

    python tools/make_resources.py CORE_JSON GROUPS_JSON ETCD_PATHS_TSV BOOTSTRAP_JSON API_SERVICES_JSON

CORE_JSON and GROUPS_JSON are aggregated discovery of /api and /apis with every version switched on, ETCD_PATHS_TSV
tells keys and stored versions, BOOTSTRAP_JSON the APIServices of a fresh server: the versions that are on by default.
API_SERVICES_JSON has those of all versions, with their priorities.
One line a resource or subresource; a group's line carries its priority order by its position.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from catalogue_file import write

PACKAGES = {
    "": "core",
    "admissionregistration.k8s.io": "admissionregistration",
    "internal.apiserver.k8s.io": "apiserverinternal",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "rbac.authorization.k8s.io": "rbac",
}
ALL = "create,delete,deletecollection,get,list,patch,update,watch"


def package(group: str) -> str:
    return PACKAGES.get(group, group.partition(".")[0])


def kind_of(gvk: dict[str, str], group: str, version: str) -> str:
    """The kind, with its own group/version in front when that is not the resource's."""
    if gvk.get("group") or gvk.get("version"):
        at = f"{gvk['group']}/{gvk['version']}" if gvk.get("group") else gvk["version"]
        if at != (f"{group}/{version}" if group else version):
            return f"{at}.{gvk['kind']}"
    return gvk["kind"]


def priorities(services: list[Any]) -> dict[tuple[str, str], tuple[int, int]]:
    """Those of group and version by their APIServices, and of APIServices themselves, which have none."""
    found = {("apiregistration.k8s.io", "v1"): (20000, 1)}
    for spec in (service["spec"] for service in services):
        found[spec.get("group", ""), spec["version"]] = (spec["groupPriorityMinimum"], spec["versionPriority"])
    return found


def main() -> None:
    core, discovery = (json.loads(Path(file).read_text()) for file in sys.argv[1:3])
    default = priorities(json.loads(Path(sys.argv[4]).read_text())["apiservices"])
    priority = priorities(json.loads(Path(sys.argv[5]).read_text())["items"])
    keys = {}
    for line in Path(sys.argv[3]).read_text().splitlines()[1:]:
        group, version, resource, key, stored = line.split("\t")
        path = key.removeprefix("/registry/").replace("/<namespace>", "").replace("/<name>", "")
        keys[group, version, resource] = (path, stored)
    lines = []
    for item in [*core["items"], *discovery["items"]]:
        group = item["metadata"].get("name", "")
        lines.append(f"group {group or '-'} {package(group)}")
        for each in item["versions"]:
            version = each["version"]
            first, second = priority[group, version]
            lines.append(f"version {version} {'on' if (group, version) in default else 'off'}={first},{second}")
            for r in each["resources"]:
                words = [
                    r["resource"],
                    r["singularResource"] or "-",
                    kind_of(r["responseKind"], group, version),
                    "namespaced" if r["scope"] == "Namespaced" else "cluster",
                    ",".join(sorted(r["verbs"])) if ",".join(sorted(r["verbs"])) != ALL else "all",
                ]
                if r.get("shortNames"):
                    words.append("short=" + ",".join(r["shortNames"]))
                if r.get("categories"):
                    words.append("categories=" + ",".join(r["categories"]))
                if (group, version, r["resource"]) in keys:
                    path, stored = keys[group, version, r["resource"]]
                    if path != r["resource"]:
                        words.append("key=" + path)
                    own = f"{group}/{version}/{r['responseKind']['kind']}"
                    if stored not in ("same", own):
                        words.append("stored=" + stored.strip("/").rpartition("/")[0])
                lines.append("  " + " ".join(words))
                for s in r.get("subresources", ()):
                    kind = kind_of(s["responseKind"], group, version) if s.get("responseKind") else "-"
                    sub = [s["subresource"], kind]
                    lines.append("    " + " ".join([*sub, ",".join(sorted(s["verbs"])) or "-"]))
    size = write("resources.txt", "\n".join(lines) + "\n")
    print(f"{len(lines)} lines, {size} bytes")


if __name__ == "__main__":
    main()
