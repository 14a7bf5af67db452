"""The examples of docs/testing.md work as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pilothouse.testing import pytest_plugin
from pilothouse.testing.in_process import InProcessServer

TEXT = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
EXAMPLE = re.compile(r"```python (\S+)\n(.*?)```", re.DOTALL)


def test_the_examples_pass(tmp_path: Path) -> None:
    examples = EXAMPLE.findall(TEXT)
    assert len(examples) >= 5
    for name, code in examples:
        (tmp_path / name).write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


def test_everything_named_exists() -> None:
    for fixture in pytest_plugin.__all__:
        assert f"`{fixture}`" in TEXT
    for name in ("url", "port", "kubeconfig", "pki", "ssl_context", "call", "request", "data_dir"):
        assert hasattr(InProcessServer, name)
        assert f"`{name}" in TEXT
