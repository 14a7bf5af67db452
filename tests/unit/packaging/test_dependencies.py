"""What the package imports is what its users get installed, no less and no more."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Where a distribution is not named after the module it brings.
MODULES = {"pyyaml": "yaml", "google-re2": "re2", "grpcio": "grpc", "pynacl": "nacl"}
MODULES |= dict.fromkeys(("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-common"), "opentelemetry")
# Read as files, never imported.
DATA = {"lightkube-models"}
# Imported only by the fixtures that pytest itself loads.
HOSTS = {"pytest"}
OWN = sys.stdlib_module_names | {"pilothouse", "__future__"}
# Each import has a line that begins with it, by the rules of the linter. Files with no other modules on such lines, nor
# words in texts that look like them, need not be parsed.
LINE = re.compile(r"^[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)


def test_every_import_is_declared_and_every_dependency_imported() -> None:
    extras = PROJECT["optional-dependencies"]
    optional = (_names(extras[name]) for name in ("grpc", "secretbox", "tracing"))
    declared = _names(PROJECT["dependencies"]).union(*optional)
    assert _imported() == {MODULES.get(name, name) for name in declared - DATA}


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9-]", requirement, maxsplit=1)[0] for requirement in requirements}


def _imported() -> set[str]:
    texts = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    found = {module for text in texts if not OWN.issuperset(LINE.findall(text)) for module in _imports(text)}
    return found - OWN - HOSTS


def _imports(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
