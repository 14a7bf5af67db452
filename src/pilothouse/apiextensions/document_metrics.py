"""How often definitions made OpenAPI documents change."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.metrics import Counter, Instrument


class DocumentMetrics:
    """Compares what a group version has with what it had; definitions are told apart by identity."""

    def __init__(self) -> None:
        self._v2 = Counter(
            "apiextensions_openapi_v2_regeneration_count",
            "[ALPHA] Changes of the OpenAPI v2 document by definitions.",
            ("crd", "reason"),
        )
        self._v3 = Counter(
            "apiextensions_openapi_v3_regeneration_count",
            "[ALPHA] Changes of OpenAPI v3 documents by definitions.",
            ("crd", "group", "reason", "version"),
        )
        self._known: dict[GroupVersion, dict[str, object]] = {}

    def note(self, gv: GroupVersion, definitions: Iterable[tuple[str, object]]) -> None:
        """A group version has these now, by name."""
        before, after = self._known.get(gv, {}), dict(definitions)
        self._known[gv] = after
        for name in {*before, *after}:
            if before.get(name) is not after.get(name):
                reason = "add" if name not in before else "remove" if name not in after else "update"
                self._v2.labelled(name, reason).value += 1
                self._v3.labelled(name, gv.group, reason, gv.version).value += 1

    def instruments(self) -> list[Instrument]:
        """All of them."""
        return [self._v2, self._v3]
