"""Write the kinds that are younger than the oldest version to emulate (src/pilothouse/apis/catalogue/introduced.txt).

    python tools/make_introduced.py KUBERNETES_CHECKOUT

When a kind came is a fact of the release, in the life cycles that are generated for its types; one line a kind:

    certificates.k8s.io/v1 PodCertificateRequest 1.37
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from catalogue_file import write
from make_gates import OLDEST

INTRODUCED = re.compile(r"\*(\w+)\) APILifecycleIntroduced\(\) \(major, minor int\) \{\n\treturn (\d+), (\d+)\n")
GROUP = re.compile(r'const GroupName = "([^"]*)"')


def main() -> None:
    rows = []
    for path in sorted((Path(sys.argv[1]) / "staging/src/k8s.io").rglob("zz_generated.prerelease-lifecycle.go")):
        (group,) = GROUP.findall((path.parent / "register.go").read_text())
        for kind, major, minor in INTRODUCED.findall(path.read_text()):
            if (int(major), int(minor)) > OLDEST and not kind.endswith("List"):
                rows.append(f"{group}/{path.parent.name} {kind} {major}.{minor}")
    size = write("introduced.txt", "".join(f"{row}\n" for row in sorted(rows)))
    print(f"{len(rows)} kinds, {size} bytes")


if __name__ == "__main__":
    main()
