"""The names OpenAPI documents use: models, operations, tags, the article before a kind."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

_PACKAGES: Final = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
# The shorter of two verbs wins, as in kube-apiserver: "deletecollection…" is a "delete" of a "collection…".
_VERBS: Final = ("get", "log", "read", "replace", "patch", "delete", "watch", "connect", "proxy", "list", "create")


@cache
def model_name(type_name: str) -> str:
    """The model of a catalogued type: ``io.k8s.api.core.v1.Pod`` for ``core.v1.Pod``."""
    package, _, rest = type_name.partition(".")
    return f"{_PACKAGES.get(package, f'io.k8s.api.{package}')}.{rest}"


@lru_cache(maxsize=256)
def identifier(text: str, capitalize: bool) -> str:
    """Camel case of the letters, digits and underscores in a text."""
    out = []
    for index, char in enumerate(text):
        if char.isalpha() or char == "_" or (index and char.isdigit()):
            out.append(char.upper() if capitalize else char)
            capitalize = False
        else:
            capitalize = True
    return "".join(out)


def operation_id_and_tag(operation: str, path: str) -> tuple[str, str]:
    """``createNamespacedPod`` below ``/api/v1`` becomes ``createCoreV1NamespacedPod``, tagged ``core_v1``."""
    verb = next(verb for verb in _VERBS if operation.startswith(verb))
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        parts[:1] = ["apis", "core"]
    if parts[0] != "apis" or len(parts) < 2:
        return verb + identifier(operation[len(verb) :], True), identifier(parts[0], False)
    group = parts[1].removesuffix(".k8s.io")
    prefix, tag = verb + identifier(group, True), identifier(group, False)
    if len(parts) > 2:
        prefix += identifier(parts[2], True)
        tag += "_" + identifier(parts[2], False)
    # What follows the verb is a Go identifier already, but for its first letter.
    return prefix + operation[len(verb)].upper() + operation[len(verb) + 1 :], tag


def article(noun: str) -> str:
    """The article before a kind, with its spaces; plurals have none."""
    if noun.endswith("s") and not noun.endswith("ss"):
        return " "
    return " an " if noun[0].lower() in "aeiou" else " a "
