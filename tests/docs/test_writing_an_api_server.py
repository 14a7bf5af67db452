"""The server of docs/writing-an-api-server.md works as it is printed, and everything the page names exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pilothouse.library.options import LibraryOptions
from pilothouse.options.option_set import flags_of

TEXT = (Path(__file__).parents[2] / "docs" / "writing-an-api-server.md").read_text()
EXAMPLE = re.compile(r"```python (\S+)\n(.*?)```", re.DOTALL)


def test_the_examples_pass(tmp_path: Path) -> None:
    for name, code in EXAMPLE.findall(TEXT):
        (tmp_path / name).write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 passed" in done.stdout


def test_the_flags_exist() -> None:
    known = flags_of(LibraryOptions)
    named = set(re.findall(r"`?--([a-z-]+[a-z])", TEXT)) - {"help", "requestheader"}
    assert named <= known.keys(), named - known.keys()


def test_the_files_exist() -> None:
    for path in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (Path(__file__).parents[2] / "docs" / path).exists(), path
