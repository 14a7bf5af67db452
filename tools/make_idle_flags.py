"""Writes ``options/idle_flags.py``: the flags that nothing reads, and which therefore have no effect yet.

    python tools/make_idle_flags.py

A flag acts where its value is read: as ``options.<group>.<attribute>``, through a name that stands for the group
(``flags = options.etcd``, ``flags: EtcdOptions``), or as ``self.<attribute>`` in the group's own class. Reading a value
in order to refuse it is no effect: functions named ``validate`` or ``…_errors``, ``…_refusal`` and ``…_conflict`` do
not count, nor does looking at a value in order to complete it. Flags that are declared as moot are no debt. A test
compares the file with the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pilothouse.options.server_options import declared_flags, flag_groups

SOURCE = Path(__file__).resolve().parent.parent / "src" / "pilothouse"
TARGET = SOURCE / "options" / "idle_flags.py"
_REFUSING = ("validate", "_errors", "_refusal", "_conflict")
_OPTIONS = ("options", "_options")
Reads = set[tuple[str, str]]


class Reader(ast.NodeVisitor):
    """Collects the options that one module reads, as (group, attribute)."""

    def __init__(self, *, counts_conditions: bool = True) -> None:
        self._counts_conditions = counts_conditions
        self.reads: Reads = set()
        self._classes = {group.__name__: name for name, group in flag_groups().items()}
        self._names: dict[str, str] = {}

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._names = self._names, dict(self._names)
        if node.name in self._classes:
            self._names["self"] = self._classes[node.name]
        for each in ast.walk(node):
            self._note_names(each)
        self.generic_visit(node)
        self._names = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name.endswith(_REFUSING):
            return
        outer, self._names = self._names, dict(self._names)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if isinstance(argument.annotation, ast.Name) and argument.annotation.id in self._classes:
                self._names[argument.arg] = self._classes[argument.annotation.id]
        for each in ast.walk(node):
            self._note_names(each)
        self.generic_visit(node)
        self._names = outer

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_If(self, node: ast.If) -> None:
        for each in ((node.test,) if self._counts_conditions else ()) + (*node.body, *node.orelse):
            self.visit(each)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        group = self._group(node.value)
        if group and isinstance(node.ctx, ast.Load):
            self.reads.add((group, node.attr))
        self.generic_visit(node)

    def _note_names(self, node: ast.AST) -> None:
        """Remember the names that an assignment gives to groups."""
        if not isinstance(node, ast.Assign):
            return
        for target in node.targets:
            for name, value in _pairs(target, node.value):
                group = self._group(value)
                if group:
                    self._names[_dotted(name)] = group

    def _group(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute) and node.attr in flag_groups():
            holder = node.value
            last = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
            if last in _OPTIONS:
                return node.attr
        return self._names.get(_dotted(node), "") if self._names else ""


def _dotted(node: ast.expr) -> str:
    """A name with its attributes as the source has it; nothing for any other expression."""
    if isinstance(node, ast.Attribute):
        holder = _dotted(node.value)
        return f"{holder}.{node.attr}" if holder else ""
    return node.id if isinstance(node, ast.Name) else ""


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def find_idle(source: Path = SOURCE) -> list[str]:
    """The names of the flags whose values nothing reads, sorted."""
    reads: Reads = set()
    for path in sorted(source.rglob("*.py")):
        text = path.read_bytes()
        if b"options." not in text and b"Options" not in text:
            continue
        reader = Reader(counts_conditions=path.name != "completion.py")
        reader.visit(ast.parse(text))
        reads |= reader.reads
    flags = declared_flags().items()
    return sorted(name for name, (group, flag) in flags if (group, flag.attribute) not in reads and not flag.moot)


def render(idle: list[str]) -> str:
    """The module as text."""
    names = "".join(f'        "{name}",\n' for name in idle)
    listed = f"frozenset(\n    {{\n{names}    }}\n)" if idle else "frozenset[str]()"
    return (
        '"""The flags that are accepted without effect. Made by ``tools/make_idle_flags.py``."""\n\n'
        "from typing import Final\n\n"
        f"IDLE_FLAGS: Final = {listed}\n"
    )


if __name__ == "__main__":
    TARGET.write_text(render(find_idle()))
