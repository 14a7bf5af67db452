"""``pilothouse version``: our version, the one of Kubernetes, and Python's."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Sequence

from pilothouse import KUBERNETES_VERSION, __version__


def run(words: Sequence[str]) -> int:
    """Print them."""
    versions = {
        "pilothouse": __version__,
        "kubernetes": f"v{KUBERNETES_VERSION}.0",
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    if parser().parse_args(words).output == "json":
        print(json.dumps(versions, indent=2))
    else:
        print(f"Pilothouse {__version__}\nKubernetes {versions['kubernetes']}\nPython {versions['python']}")
    return 0


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(prog="pilothouse version", description="Prints the versions.")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text")
    return made
