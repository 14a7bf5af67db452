"""The site is whole: every page has its place, links lead somewhere, and what is made from declarations is complete.

``make docs`` builds it and looks at links and anchors as well; these tests need none of its tools.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilothouse.apis.gates import known_gates
from pilothouse.cli.main import commands
from pilothouse.options.idle_flags import IDLE_FLAGS
from pilothouse.options.server_options import declared_flags

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
PROJECT = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)")
_ANCHOR = re.compile(r"\]\(([^)\s#:]*)#([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def reference() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import reference_pages
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return reference_pages


def placed(entries: list[Any]) -> Iterator[str]:
    """The pages of a navigation, however deep."""
    for entry in entries:
        target = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(target, str):
            yield from (str(path.relative_to(DOCS)) for path in DOCS.glob(target)) if "*" in target else (target,)
        else:
            yield from placed(target)


def test_every_page_has_its_place(reference: Any) -> None:
    navigation = list(placed(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    made = [*reference.PAGES, *(f"project/{name}" for name in PROJECT)]
    assert sorted(navigation) == sorted([*PAGES, *made])


@pytest.mark.parametrize("document", [*PROJECT, *(f"docs/{page}" for page in PAGES)])
def test_links_lead_somewhere(document: str, reference: Any) -> None:
    path = ROOT / document
    made = {(DOCS / page).resolve() for page in reference.PAGES}
    targets = [(path.parent / link).resolve() for link in _LINK.findall(path.read_text())]
    assert [str(target) for target in targets if target not in made and not target.exists()] == []


def anchors(path: Path) -> set[str]:
    """What headings of a page are called in links, on the site and where the repository is browsed."""
    headings = _HEADING.findall(_FENCE.sub("", path.read_text()))
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("document", [*PROJECT, *(f"docs/{page}" for page in PAGES)])
def test_anchors_are_headings(document: str) -> None:
    path = ROOT / document
    found = _ANCHOR.findall(path.read_text())
    targets = [((path.parent / link).resolve() if link else path, anchor) for link, anchor in found]
    pages = [(target, anchor) for target, anchor in targets if target.suffix == ".md" and target.exists()]
    assert [f"{target}#{anchor}" for target, anchor in pages if anchor not in anchors(target)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("investigations/")])
def test_investigations_begin_with_what_holds_today(page: str) -> None:
    assert re.findall(r"^## (.+)$", (DOCS / page).read_text(), re.MULTILINE)[0] == "Today"


def test_every_flag_is_described(reference: Any) -> None:
    page = reference.flags_page()
    shown = {name for name, (_, flag) in declared_flags().items() if not flag.hidden}
    assert {name for name in shown if f"--{name}`" not in page} == set()
    assert page.count("**No effect yet.**") == len(IDLE_FLAGS & shown)


def test_every_gate_and_command_is_described(reference: Any) -> None:
    gates = reference.gates_page()
    assert all(f"| `{name}` |" in gates for name in known_gates())
    page = reference.commands_page()
    for name in set(commands()) - {"help", "serve", "inspect"}:
        assert f"## {name}\n\n```text\nusage: pilothouse {name}" in page


def test_cells_stay_within_their_tables(reference: Any) -> None:
    for make in reference.PAGES.values():
        text = re.sub(r"```.*?```", "", make(), flags=re.DOTALL)
        tables = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
        assert {line.count("|") for line in tables} <= {3, 5}
