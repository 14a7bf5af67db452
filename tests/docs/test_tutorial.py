"""The tutorial works as it is printed: its commands are typed, its tests are run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import find_client
from tests.docs.walkthrough import Command, Walk, commands, matches, write_files

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"


def test_the_first_cluster_and_definition(tmp_path: Path) -> None:
    """Both pages on one server, as their reader does it."""
    clients = Path(find_client("kubectl", "KUBECTL")).parent
    with Walk(tmp_path, [Path(sys.executable).parent, clients]) as walk:
        assert walk.read(TUTORIAL / "first-cluster.md") > 10
        assert walk.read(TUTORIAL / "first-crd.md") > 5


def test_the_tests_of_the_other_pages(tmp_path: Path) -> None:
    """From here on the reader writes tests: all of them pass, on one server of the test process."""
    pages = ("first-operator-test.md", "first-webhook.md", "first-aggregated-api.md")
    for page in pages:
        write_files(TUTORIAL / page, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_commands_of_a_block() -> None:
    block = "$ one \\\n    two\nprinted\n$ three\n"
    assert commands(block) == [Command("one \\\n    two", "printed"), Command("three", "")]


@pytest.mark.parametrize(
    ("wanted", "seen", "is_so"),
    [
        ("NAME   AGE\na  ...", "NAME  AGE\na     12s\n", True),
        ("a ... c", "a b\nc", False),
        ("...\nlast", "one\ntwo\nlast\n", True),
        ("first\n...", "first\n", True),
        ("first", "first\nsecond", False),
        ("1.5", "1x5", False),
    ],
)
def test_what_is_printed(wanted: str, seen: str, is_so: bool) -> None:
    assert matches(wanted, seen) is is_so
