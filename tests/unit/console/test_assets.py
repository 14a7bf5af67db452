from __future__ import annotations

import re
from importlib.resources import files

import pytest

from pilothouse.console.assets import POLICY, Assets

FOLDER = files("pilothouse.console") / "static"
FILES = {each.name: each.read_text() for each in FOLDER.iterdir()}


def test_every_file_can_be_served() -> None:
    found = Assets()._all()
    assert found.keys() == FILES.keys() >= {"index.html", "console.css", "main.js", "icon.svg"}
    assert len({asset.etag for asset in found.values()}) == len(found)


def test_the_policy_has_no_exceptions() -> None:
    assert b"unsafe" not in POLICY and b"*" not in POLICY and b"http" not in POLICY


@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_comes_from_elsewhere_and_nothing_is_inline(name: str) -> None:
    text = FILES[name].replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|@import", text)
    if name.endswith(".html"):
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", text)
    if name.endswith(".js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage", text
        )


@pytest.mark.parametrize("name", sorted(name for name in FILES if name.endswith(".js")))
def test_scripts_import_what_is_there(name: str) -> None:
    for names, module in re.findall(r'import \{([^}]+)\} from "\./([^"]+)"', FILES[name]):
        for each in names.split(","):
            exported = rf"export (async )?(function\*?|class|const) {each.strip()}\b"
            assert re.search(exported, FILES[module]), (name, each, module)


def test_all_that_the_page_needs_is_there() -> None:
    for link in re.findall(r'(?:src|href)="([^"#]+)"', FILES["index.html"]):
        assert link in FILES
