"""Write the catalogue of versions that are served no more (legacy_types.txt, legacy_resources.txt in the catalogue).

    python tools/make_legacy.py RECORDED CHECKOUT...

CHECKOUTs are source trees of older releases, oldest first. RECORDED holds what their servers said of themselves: for
each release R ``discovery-R.json``, ``apiservices-R.tsv`` and ``etcd-R.tsv``, and ``deprecations.tsv`` for all. Of a
kind that several releases have, the last one counts. What today's catalogue has is left out, so that is to be made
first.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from catalogue_file import FOLDER, write
from make_resources import ALL, kind_of, package
from make_types import FIELD, SKIPPED_TYPES, SPECIAL, Source, field_line, short

PACKAGES = ("autoscaling", "auditregistration", "batch", "discovery", "extensions", "policy", "scheduling", "settings")
"""Packages of types that today's source has no more, at least in part."""
FOREIGN = {
    "deployments": "apps/v1",
    "daemonsets": "apps/v1",
    "replicasets": "apps/v1",
    "ingresses": "networking.k8s.io/v1",
    "networkpolicies": "networking.k8s.io/v1",
    "podsecuritypolicies": "policy/v1beta1",
}
"""Where objects of the group extensions are kept."""
UNRECORDED = {"flowcontrol.apiserver.k8s.io/v1beta3": ("flowcontrol.apiserver.k8s.io/v1beta2", 18)}
"""Versions that lived between the recorded releases: the version they are like, and their priority."""
ENDS = {
    ("settings.k8s.io/v1alpha1", "PodPreset"): "deprecated=14 removed=20",
    ("auditregistration.k8s.io/v1alpha1", "AuditSink"): "deprecated=14 removed=19",
    ("batch/v2alpha1", "CronJob"): "deprecated=8 removed=21 use=batch/v1.CronJob",
    ("discovery.k8s.io/v1alpha1", "EndpointSlice"): "deprecated=17 removed=20 use=discovery.k8s.io/v1.EndpointSlice",
    ("scheduling.k8s.io/v1alpha1", "PriorityClass"): "deprecated=14 removed=23 use=scheduling.k8s.io/v1.PriorityClass",
}
"""Ends that no lifecycle of a type tells."""


def known(file: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, (FOLDER / file).read_text(), re.M))


def legacy_types(checkouts: list[Path]) -> str:
    """Blocks of the types that today's catalogue lacks."""
    have = known("types.txt", r"^(\w+\.\w+\.\w+)")
    blocks: dict[str, str] = {}
    for checkout in checkouts:
        source = Source(checkout / "staging/src/k8s.io")
        for path, each in source.packages.items():
            for name, body in each.structs.items():
                full = f"{short(path)}.{name}"
                skipped = f"{path}.{name}" in SPECIAL or name in SKIPPED_TYPES or (body.strip() and "json:" not in body)
                if full not in have and not skipped and short(path).partition(".")[0] in PACKAGES:
                    lines = [field_line(source, each, name, match, None) for match in FIELD.finditer(body)]
                    blocks[full] = "\n".join([full, *filter(None, lines)])
    return "\n\n".join(block for _, block in sorted(blocks.items())) + "\n"


class Served:
    """What the recorded releases served and today's does not."""

    def __init__(self, recorded: Path) -> None:
        self.recorded = recorded
        self.priorities = {"apiregistration.k8s.io/v1beta1": "20000,1"}
        self.resources: dict[str, dict[str, Any]] = {}
        for file in sorted(recorded.glob("discovery-*.json")):
            self._read(file)
        for version, (like, own) in UNRECORDED.items():
            self.resources[version] = self.resources[like]
            self.priorities[version] = self.priorities[like].partition(",")[0] + f",{own}"
        self.ends = dict(ENDS)
        for line in (recorded / "deprecations.tsv").read_text().splitlines()[1:]:
            version, kind, _, deprecated, removed, replacement, *_ = line.split("\t")
            use = f" use={replacement.replace(' ', '.')}" if replacement else ""
            self.ends[version, kind] = f"deprecated={deprecated[3:]} removed={removed[3:]}{use}"

    def _read(self, file: Path) -> None:
        release = file.stem.partition("-")[2]
        for line in (self.recorded / f"apiservices-{release}.tsv").read_text().splitlines()[1:]:
            group, version, minimum, own = line.split("\t")
            self.priorities.setdefault(f"{group}/{version}", f"{minimum},{own}")
        for version, document in json.loads(file.read_text())["resources"].items():
            if "/" in version:
                self.resources.setdefault(version, {}).update({each["name"]: each for each in document["resources"]})


def today() -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Rows of today's table by version and name, and the words after ``key=`` and ``stored=`` by group and name."""
    rows: dict[str, str] = {}
    kept: dict[tuple[str, str], str] = {}
    group = version = ""
    for line in (FOLDER / "resources.txt").read_text().splitlines():
        words = line.split()
        if line.startswith("group "):
            group = words[1]
        elif line.startswith("version "):
            version = words[1]
        elif re.match(r"  \w", line):
            rows[f"{group}/{version} {words[0]}"] = line
            key = next((word for word in words if word.startswith("key=")), "")
            stored = next((word for word in words if word.startswith("stored=")), f"stored={group}/{version}")
            kept.setdefault((group, words[0]), f"{key} {stored}".strip())
    return rows, kept


def legacy_resources(served: Served) -> str:
    """The table of resources, in the form of today's."""
    rows, kept = today()
    groups: dict[str, list[str]] = {}
    for at, resources in served.resources.items():
        group, _, version = at.partition("/")
        lines: list[str] = []
        for name, row in sorted(resources.items()):
            if f"{at} {name.partition('/')[0]}" not in rows and _is_row(name, resources):
                lines.append(_line(at, name, row, resources, kept, served.ends))
        if lines:
            listed = groups.setdefault(group, [f"group {group} {package(group)}"])
            listed += [f"version {version} off={served.priorities[at]}", *lines]
    return "\n".join(line for lines in groups.values() for line in lines) + "\n"


def _is_row(name: str, resources: dict[str, Any]) -> bool:
    return "/" not in name or name.partition("/")[0] in resources


def _line(
    at: str, name: str, row: Any, resources: dict[str, Any], kept: dict[tuple[str, str], str], ends: dict[Any, str]
) -> str:
    group, _, version = at.partition("/")
    verbs = ",".join(sorted(row["verbs"]))
    # Discovery names the version of a scale even where it is the resource's own.
    kind = f"{row['group']}/{row['version']}.{row['kind']}" if row.get("version") else kind_of(row, group, version)
    home = f"{row.get('group') or group}/{row.get('version') or version}"
    end = ends.get((home, row["kind"]), "")
    if "/" in name:
        return " ".join(filter(None, [f"    {name.partition('/')[2]}", kind, verbs or "-", end]))
    words = [f"  {name}", row["kind"].lower(), kind, "namespaced" if row["namespaced"] else "cluster"]
    words.append("all" if verbs == ALL else verbs or "-")
    words += [f"{word}={','.join(row[key])}" for word, key in _LISTS if row.get(key)]
    if group == "extensions" and name in FOREIGN:
        words += [_key(FOREIGN[name], name, kept), f"stored={FOREIGN[name]}"]
    elif name == "podsecuritypolicies":
        words.append("key=podsecuritypolicy")
    else:
        words.append(kept.get((group, name), ""))
    return " ".join(filter(None, [*words, end]))


_LISTS = (("short", "shortNames"), ("categories", "categories"))


def _key(home: str, name: str, kept: dict[tuple[str, str], str]) -> str:
    words = "key=podsecuritypolicy" if name == "podsecuritypolicies" else kept[home.partition("/")[0], name]
    return next((word for word in words.split() if word.startswith("key=")), "")


def main() -> None:
    recorded, *checkouts = map(Path, sys.argv[1:])
    print("types:", write("legacy_types.txt", legacy_types(checkouts)), "bytes")
    print("resources:", write("legacy_resources.txt", legacy_resources(Served(recorded))), "bytes")


if __name__ == "__main__":
    main()
