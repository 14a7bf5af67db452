"""Files, flags and make targets that the documents name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pilothouse.options.server_options import declared_flags

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/testing.md",
    "docs/admission-plugins.md",
    "docs/next-release.md",
    "docs/console.md",
    "SECURITY.md",
    "docs/investigations/faults.md",
    "docs/investigations/fidelity.md",
    "docs/investigations/hardening.md",
)
SOURCE = ROOT / "src" / "pilothouse"
ROBUSTNESS = ROOT / "tests" / "robustness"
FOLDERS = (ROOT, SOURCE, SOURCE / "endpoints" / "output", SOURCE / "machinery", ROBUSTNESS, ROBUSTNESS / "attacks")
_QUOTED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[\w.-]+(?:/[\w.*<>-]+)*/?")


def quoted(document: str) -> list[str]:
    return _QUOTED.findall((ROOT / document).read_text())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_exist(document: str) -> None:
    paths = [text for text in quoted(document) if _PATH.fullmatch(text) and ("/" in text or text.endswith(".py"))]
    patterns = [re.sub("<\\w+>", "*", path).rstrip("/") for path in paths if not path.startswith(".")]
    made = ("pilothouse-data", "conftest.py", "build/")
    missing = [
        pattern
        for pattern in patterns
        if not pattern.startswith(made) and not any(next(folder.glob(pattern), None) for folder in FOLDERS)
    ]
    assert missing == []


def test_files_of_drawings_exist() -> None:
    """Walks and drawings are in fenced blocks, where names stand without quotes."""
    blocks = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1::2]
    named = {name for block in blocks for name in re.findall(r"\b[\w/]+/\w+\.py\b", block)}
    assert len(named) > 30
    assert [name for name in sorted(named) if not (SOURCE / name).is_file()] == []


def test_modules_that_packages_list_exist() -> None:
    """A package opens with a line for each of its modules; renaming one must not leave its former name there."""
    listed = re.compile(r"^ *(\w+)(?:\.py)?  +\S", re.MULTILINE)
    packages = {path: path.read_text().partition('"""')[2].partition('"""')[0] for path in SOURCE.rglob("__init__.py")}
    named = [path.parent / name for path, text in packages.items() for name in listed.findall(text)]
    assert len(named) > 20
    assert [str(each) for each in named if not each.is_dir() and not each.with_suffix(".py").is_file()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_flags_exist(document: str) -> None:
    known = declared_flags().keys()
    named = {match for text in quoted(document) for match in re.findall(r"--([a-z][a-z-]+)", text)}
    assert (
        named
        - known
        - {"quick", "beside", "etcd", "area", "exclude-editable", "strict", "kubeconfig", "user", "group", "open"}
        == set()
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_targets_exist(document: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {match for text in quoted(document) for match in re.findall(r"^make ([a-z]+)", text)}
    assert named <= targets
