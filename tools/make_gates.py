"""Write the feature gates of a release (src/pilothouse/apis/catalogue/gates.txt) from its sources.

``gate_history.txt`` beside it has what they were in the versions that a server can emulate.

    python tools/make_gates.py KUBERNETES_CHECKOUT

Names, stages, defaults and dependencies are facts of the release; one line a gate:

    PodLevelResources beta on
    DRAWorkloadResourceClaims beta off needs=GenericWorkload
    ServiceCIDR ga on locked
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from catalogue_file import write

RELEASE = (1, 37)
COMPATIBLE = (1, 36)
"""The oldest release that a server is compatible with unless told otherwise."""
OLDEST = (1, 34)
"""The oldest release that a server can emulate."""
SOURCES = (
    "pkg/features/kube_features.go",
    "staging/src/k8s.io/apiserver/pkg/features/kube_features.go",
    "staging/src/k8s.io/apiextensions-apiserver/pkg/features/kube_features.go",
    "staging/src/k8s.io/controller-manager/pkg/features/kube_features.go",
    "staging/src/k8s.io/component-base/logs/api/v1/kube_features.go",
    "staging/src/k8s.io/component-base/metrics/features/kube_features.go",
    "staging/src/k8s.io/component-base/zpages/features/kube_features.go",
    "staging/src/k8s.io/client-go/features/known_features.go",
)
NAME = re.compile(r"^\t(\w+)\s+(?:[\w.]*Feature)?\s*=\s*(?:[\w.]*Feature\()?\"(\w+)\"", re.MULTILINE)
ENTRY = re.compile(r"^\t+([\w.]+):\s+(?:featuregate\.VersionedSpecs)?\{\n((?:\t+(?:\{|//).*\n)+)\t+\}", re.MULTILINE)
NEEDS = re.compile(r"^\t([\w.]+): \{([^}]*)\}", re.MULTILINE)
NEEDED = re.compile(r"(\w+)\)?,?")


def version(text: str, key: str) -> tuple[int, ...] | None:
    """The version under a key of a spec."""
    found = re.search(rf"\b{key}: version\.(?:MustParse\(\"([\d.]+)\"\)|MajorMinor\((\d+), (\d+)\))", text)
    if found is None:
        return None
    parts = found.group(1).split(".") if found.group(1) else (found.group(2), found.group(3))
    return tuple(int(part) for part in parts)


def effective(specs: str) -> str | None:
    """The last spec that holds in the release."""
    held = None
    for line in specs.splitlines():
        since, compatible = version(line, "Version"), version(line, "MinCompatibilityVersion")
        if since is not None and since <= RELEASE and (compatible or COMPATIBLE) <= COMPATIBLE:
            held = line
    return held


def row(name: str, spec: str, needs: list[str]) -> str:
    found = re.search(r"PreRelease: +(?:featuregate\.)?(\w+)", spec)
    stage = "ga" if found is None else found.group(1).lower()
    words = [name, stage, "on" if re.search(r"\bDefault: true", spec) else "off"]
    words += ["locked"] if "LockToDefault: true" in spec else []
    words += [f"needs={','.join(sorted(needs))}"] if needs else []
    return " ".join(words)


def history(name: str, specs: str) -> list[str]:
    """What a gate was, from the oldest release to emulate; empty for one that never changed since."""
    lines: list[tuple[tuple[int, ...], str]] = []
    for line in specs.splitlines():
        since, compatible = version(line, "Version"), version(line, "MinCompatibilityVersion")
        if since is None or since > RELEASE:
            continue
        if since <= OLDEST:
            since, lines = OLDEST, []
        needed = "" if compatible is None else f" compatible={'.'.join(map(str, compatible))}"
        words = row(name, line, []).removeprefix(f"{name} ")
        lines.append((since, f"{name} {'.'.join(map(str, since))} {words}{needed}"))
    changed = len(lines) > 1 or any(since > OLDEST for since, _ in lines)
    return [line for _, line in lines] if changed else []


def main() -> None:
    texts = [(Path(sys.argv[1]) / source).read_text() for source in SOURCES]
    names = {key: value for text in texts for key, value in NAME.findall(text)}
    dependencies = texts[0][texts[0].index("var defaultKubernetesFeatureGateDependencies") :]
    needs = {
        names[key.rpartition(".")[2]]: [names[word] for word in NEEDED.findall(listed) if word in names]
        for key, listed in NEEDS.findall(dependencies)
    }
    rows, older = {}, {}
    for text in texts:
        for key, specs in ENTRY.findall(text):
            spec, name = effective(specs), names.get(key.rpartition(".")[2])
            if spec is not None and name is not None:
                rows[name] = row(name, spec, needs.get(name, []))
                older[name] = history(name, specs)
    size = write("gates.txt", "\n".join(rows[name] for name in sorted(rows)) + "\n")
    print(f"{len(rows)} gates, {size} bytes")
    write("gate_history.txt", "".join(f"{line}\n" for name in sorted(older) for line in older[name]))


if __name__ == "__main__":
    main()
