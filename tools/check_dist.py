"""Whether what ``make dist`` built works: installed in a new environment, the command runs and a server answers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

_TRY = """
from pilothouse.testing.in_process import InProcessServer
with InProcessServer() as server:
    print(server.call("GET", "/readyz").body)
"""


def main(folder: str, constraints: str) -> int:
    """Check the only wheel of a folder; the exit code."""
    (wheel,) = Path(folder).glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="pilothouse-dist-") as clean:
        venv.create(clean, with_pip=True)
        python = Path(clean) / "bin" / "python"
        install = [
            str(python),
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            "install",
            "-c",
            constraints,
            str(wheel),
        ]
        subprocess.run(install, check=True)
        subprocess.run([Path(clean) / "bin" / "pilothouse", "version"], check=True)
        done = subprocess.run([python, "-c", _TRY], check=True, capture_output=True, text=True, cwd=clean)
    return 0 if "b'ok'" in done.stdout else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
