"""What built-in types and their fields are for, in the words of the API's own documentation.

The texts are not part of this package: they are read, when first needed, from the docstrings of ``lightkube-models``.
Its modules are read as text, never imported. Without the package every description is empty and nothing else changes.

The docstrings hold the descriptions wrapped at 78 columns. Unwrapping rests on how the descriptions were made in the
first place: paragraphs are one line each and stand apart by an empty line, indented lines keep a line of their own. So

    a line that ends although the next word had room   → a paragraph ended there
    a line that begins with white space                → it is an indented line
    any other line end                                 → the wrapping; it was a space

What cannot be told is a paragraph that happens to end where the next word had no room; ``_OPENINGS`` names the openings
of paragraphs for which that was seen. The wrapping of types' descriptions keeps empty lines, that of fields' does not.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Final

_WIDTH: Final = 78
_OPEN: Final = 'r"""'
_CLOSE: Final = '\n    """'
_PARAMETERS: Final = "\n\n      **parameters**\n\n"
_ITEM: Final = "      * **"
_LIST_MARKS: Final = ("- ", "* ")
_OPENINGS: Final = (
    "Administrators may", "Alternatively, the", "Applies to", "CEL expressions", "Exactly one", "If this field",
    "Known condition", "Max (if", "Must be a DNS", "Must not", "References using", "Signer implementations",
    "Signers should", "The check can", "The maximum", "The total", "This field was immutable", "When the",
)  # fmt: skip


def edition() -> str:
    """Which edition of the texts is installed, or nothing.

    By the name of its folder: ``importlib.metadata`` takes a tenth of a second to say the same when first asked.
    """
    folder = _folder()
    beside = folder.parent.parent.glob("lightkube_models-*.dist-info") if folder else ()
    return next((each.stem.partition("-")[2] for each in beside), "")


@lru_cache(maxsize=2048)
def describe(type_name: str, field: str) -> str:
    """The description of a field of a catalogued type, or nothing: ``describe("core.v1.PodStatus", "podIP")``."""
    return descriptions(type_name).get(field, "")


@lru_cache(maxsize=256)
def describe_type(type_name: str) -> str:
    """The description of a type, or nothing."""
    head, _, _ = _docstring(type_name).partition(_PARAMETERS)
    lines = head.split("\n")
    return _unwrap([lines[0], *(line[6:] for line in lines[1:])], of_field=False)


@lru_cache(maxsize=32)
def descriptions(type_name: str) -> dict[str, str]:
    """The descriptions of all fields of a type, by JSON name."""
    _, _, items = _docstring(type_name).partition(_PARAMETERS)
    found: dict[str, str] = {}
    for item in f"\n{items}".split("\n" + _ITEM)[1:]:
        name, _, rest = item.partition("**")
        first, *lines = rest.partition("`` - ")[2].rstrip().split("\n")
        found[_json_name(name)] = _unwrap([first, *(line[8:] for line in lines)])
    return found


def _json_name(name: str) -> str:
    """The field behind a Python attribute: ``continue_``, ``d_ref``, ``x_kubernetes_list_type``."""
    if name.startswith("x_kubernetes_"):
        return name.replace("_", "-")
    return "$" + name[2:] if name.startswith("d_") else name.removesuffix("_")


def _docstring(type_name: str) -> str:
    package, _, name = type_name.rpartition(".")
    text = _module(package.replace(".", "_")).get(name, "")
    return text[text.find(_OPEN) + len(_OPEN) : text.find(_CLOSE)]


@lru_cache(maxsize=4)
def _module(name: str) -> dict[str, str]:
    """The text of one module by class. Few are kept: callers ask for one type after the other of the same module."""
    folder = _folder()
    path = folder / f"{name}.py" if folder else None
    if path is None or not path.is_file():
        return {}
    classes = path.read_text(encoding="utf-8").split("\nclass ")[1:]
    return {text[: text.index("(")]: text for text in classes}


@cache
def _folder() -> Path | None:
    spec = find_spec("lightkube")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / "models"
        if folder.is_dir():
            return folder
    return None


def _unwrap(lines: list[str], *, of_field: bool = True) -> str:
    parts = [lines[0]]
    gap = _sentence_gap(lines)
    for previous, line in pairwise(lines):
        parts += (_separator(previous, line, gap if previous.endswith(".") else " ", of_field), line)
    return "".join(parts)


def _sentence_gap(lines: list[str]) -> str:
    """One space or two, whichever this author puts between sentences more often."""
    text = "\n".join(lines)
    double = text.count(".  ")
    return "  " if double > text.count(". ") - double else " "


def _separator(previous: str, line: str, space: str, of_field: bool) -> str:
    if not previous or not line:
        return "\n"
    if line[0].isspace():
        return "\n\n" if _opens_block(previous, line) else "\n"
    if len(previous) + len(space) + len(line.split(" ", 1)[0]) > _WIDTH:
        return "\n\n" if of_field and _opens_paragraph(previous, line) else space
    if previous[0].isspace():
        return "\n\n" if line[0].isupper() else "\n"
    return "\n\n"


def _opens_block(previous: str, line: str) -> bool:
    """Whether an empty line stood between a paragraph and the indented lines it announces."""
    announced = previous[-1] == ":" and not previous[0].isspace() and previous[1:2] != ")"
    return announced and line.startswith(("    ", "\t")) and not line.lstrip().startswith(_LIST_MARKS)


def _opens_paragraph(previous: str, line: str) -> bool:
    if previous[0].isspace():
        return False
    return line.startswith(_OPENINGS) if previous[-1] == "." else previous[-1] == ":" and line.startswith(_LIST_MARKS)
