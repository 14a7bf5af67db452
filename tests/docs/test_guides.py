"""The how-to guides work as they are printed: their commands are typed, their programs are run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import find_client
from tests.docs.walkthrough import Walk, write_files

from pilothouse.testing.etcd_process import find_etcd

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
SOAK = pytest.mark.soak
"""Each of these takes some seconds of processor time: left to ``make soak``."""
HERE = Path(sys.executable).parent


def path_of_tools() -> list[Path]:
    etcd = find_etcd()
    assert etcd is not None
    return [HERE, Path(find_client("kubectl", "KUBECTL")).parent, Path(etcd).parent]


@pytest.mark.parametrize(
    "guide", ["several-servers", pytest.param("backup-and-restore", marks=SOAK), pytest.param("ci", marks=SOAK)]
)
def test_the_commands_of_a_guide(guide: str, tmp_path: Path) -> None:
    with Walk(tmp_path, path_of_tools()) as walk:
        assert walk.read(GUIDES / f"{guide}.md") > 3


@pytest.mark.soak
@pytest.mark.parametrize(
    ("tool", "command", "printed"),
    [
        ("node", ["node", "--test"], "# pass 1"),
        ("javac", ["sh", "-c", "javac Pilothouse.java Try.java && java Try"], "ready"),
    ],
)
def test_servers_for_other_languages(tool: str, command: list[str], printed: str, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    write_files(GUIDES / "java-and-node.md", tmp_path)
    environment = {**os.environ, "PATH": f"{HERE}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert printed in done.stdout
