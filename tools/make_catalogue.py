"""Make everything anew that the package knows of a Kubernetes release by heart.

    python tools/make_catalogue.py KUBERNETES_CHECKOUT RECORDED

KUBERNETES_CHECKOUT is the source tree of the release, RECORDED a folder of what its server said of itself.
``docs/next-release.md`` tells how to get both and what is left to do by hand.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def plan(checkout: Path, recorded: Path) -> dict[str, tuple[Path, ...]]:
    """The scripts to run, each with what it reads."""
    fresh = recorded / "bootstrap-objects.json"
    return {
        "make_types.py": (checkout / "staging/src/k8s.io", recorded / "openapi-v3"),
        "make_enums.py": (checkout / "pkg/generated/openapi/zz_generated.openapi.go",),
        "make_gates.py": (checkout,),
        "make_introduced.py": (checkout,),
        "make_resources.py": (
            recorded / "api.json",
            recorded / "apis.json",
            recorded / "etcd-paths.tsv",
            fresh,
            recorded / "apiservices.json",
        ),
        "make_rbac_policy.py": (fresh,),
        "make_bootstrap.py": (fresh,),
    }


def main() -> None:
    """Check that everything is there, then run all scripts."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: make catalogue KUBERNETES=checkout RECORDED=folder (see docs/next-release.md)")
    scripts = plan(Path(sys.argv[1]), Path(sys.argv[2]))
    missing = [str(path) for paths in scripts.values() for path in paths if not path.exists()]
    if missing:
        raise SystemExit("missing: " + ", ".join(dict.fromkeys(missing)))
    for script, paths in scripts.items():
        print(script, flush=True)
        subprocess.run([sys.executable, str(HERE / script), *map(str, paths)], check=True)


if __name__ == "__main__":
    main()
