"""Whether what ``make dist`` built is good: the same bytes each time, and a server that works once it is installed.

    python tools/check_dist.py dist again constraints.txt

``dist`` and ``again`` hold what two builds made. The wheel is installed in a new environment, as a new user does it;
there the command runs and the operator test of the tutorial passes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_TUTORIAL = _ROOT / "docs" / "tutorial" / "first-operator-test.md"
_FILE = re.compile(r"^```\w+ (\S+\.\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INSTALLED_BY_READERS = ("pytest", "kopf")


def differences(one: Path, other: Path) -> Iterator[str]:
    """What two builds do not have in common."""
    names = {path.name for path in one.iterdir()} | {path.name for path in other.iterdir()}
    for name in sorted(names):
        if not (one / name).is_file() or not (other / name).is_file():
            yield f"{name} was not built each time"
        elif (one / name).read_bytes() != (other / name).read_bytes():
            yield f"{name} has other bytes each time"


def try_wheel(wheel: Path, constraints: Path) -> None:
    """Go the way of a new user in an environment and a folder of their own. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-dist-") as folder:
        home = Path(folder) / "home"
        venv.create(Path(folder) / "env", with_pip=True)
        python = str(Path(folder) / "env" / "bin" / "python")
        for name, text in _FILE.findall(_TUTORIAL.read_text()):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "-c", str(constraints)]
        _run([*pip, str(wheel), *_INSTALLED_BY_READERS], home)
        _run([str(Path(python).with_name("pilothouse")), "version"], home)
        _run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider"], home)


def _run(words: Sequence[str], folder: Path) -> None:
    subprocess.run(words, check=True, cwd=folder)


def main(built: str, again: str, constraints: str) -> int:
    """Check the distributions of a folder; the exit code."""
    found = list(differences(Path(built), Path(again)))
    for difference in found:
        print(difference, file=sys.stderr)
    (wheel,) = Path(built).glob("*.whl")
    try_wheel(wheel.resolve(), Path(constraints).resolve())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
