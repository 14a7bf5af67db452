"""What mkdocs is told when it builds the site: pages that are made, files from outside of ``docs/``, links to them.

The documents are written to be read where they are, in the repository. Here README-like files of the root become pages
under ``project/``, files that pages link to (``contrib/``, ``examples/``) are put beside them under ``files/``, and
links are led there. A fenced block with a file's name gets it as its title.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from reference_pages import PAGES

ROOT: Final = Path(__file__).resolve().parent.parent
PROJECT: Final = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
SHOWN: Final = ("contrib", "examples", "LICENSE")
_LINK: Final = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_FOREIGN: Final = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*(?:src|href)=["']?https?:[^>]*>""")
_NAMED_FENCE: Final = re.compile(r"^```(\w+) ([\w./-]+)$", re.MULTILINE)
_SESSION_FENCE: Final = re.compile(r"^```console \w+$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder in the place of an entry with a star."""
    config.nav = spelt_out(config.nav or [], Path(config.docs_dir))
    return config


def spelt_out(entries: list[Any], docs: Path) -> list[Any]:
    """A navigation without stars."""
    return [_entry(entry, docs) if isinstance(entry, dict) else entry for entry in entries]


def _entry(entry: dict[str, Any], docs: Path) -> dict[str, Any]:
    ((title, target),) = entry.items()
    return {title: _pages(docs, target) if isinstance(target, str) else spelt_out(target, docs)}


def _pages(docs: Path, target: str) -> str | list[str]:
    if "*" not in target:
        return target
    found = sorted(str(path.relative_to(docs)) for path in docs.glob(target))
    return sorted(found, key=lambda page: not page.endswith("README.md"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is not below ``docs/``."""
    for place, make in PAGES.items():
        files.append(File.generated(config, place, content=make()))
    for name in PROJECT:
        files.append(File.generated(config, f"project/{name}", content=(ROOT / name).read_text()))
    for name in SHOWN:
        for path in [ROOT / name, *sorted((ROOT / name).rglob("*"))]:
            if path.is_file() and "__pycache__" not in path.parts:
                files.append(File.generated(config, f"files/{path.relative_to(ROOT)}", abs_src_path=str(path)))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that would load something from elsewhere: the site is to be readable without a network."""
    if found := _FOREIGN.search(output):
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {found[0]}")
    return output


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where things are in the site."""
    place = page.file.src_uri
    origin = place.removeprefix("project/") if place.startswith("project/") else f"docs/{place}"
    led = _LINK.sub(lambda found: found[1] + led_link(origin, place, found[2]) + found[3], markdown)
    return _NAMED_FENCE.sub(r'```\1 title="\2"', _SESSION_FENCE.sub("```console", led))


def led_link(origin: str, place: str, target: str) -> str:
    """Where a link of the document ``origin`` leads in the site, from the page at ``place``."""
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
    if meant in PROJECT:
        led = f"project/{meant}"
    elif meant.startswith("docs/"):
        led = meant.removeprefix("docs/")
    elif meant.split("/")[0] in SHOWN:
        led = f"files/{meant}"
    else:
        return target
    return posixpath.relpath(led, posixpath.dirname(place) or ".")
