"""What is counted about auditing."""

from __future__ import annotations

from pilothouse.audit.policy import LEVEL_NAMES
from pilothouse.machinery.metrics import Counter, Instrument


class AuditMetrics:
    """The instruments of one server."""

    def __init__(self) -> None:
        self._events = Counter("apiserver_audit_event_total", "[ALPHA] Audit events made.")
        self._rejected = Counter(
            "apiserver_audit_requests_rejected_total", "[ALPHA] Requests refused because they could not be audited."
        )
        self._levels = Counter("apiserver_audit_level_total", "[ALPHA] Requests by their audit level.", ("level",))
        self._errors = Counter("apiserver_audit_error_total", "[ALPHA] Audit events lost.", ("plugin",))
        self.events, self.rejected = self._events.labelled(), self._rejected.labelled()

    def note_level(self, level: int) -> None:
        """A request is audited at this level."""
        self._levels.labelled(LEVEL_NAMES[level]).value += 1

    def lose(self, plugin: str, count: int) -> None:
        """So many events did not get through a plug-in."""
        self._errors.labelled(plugin).value += count

    def instruments(self) -> list[Instrument]:
        """All of them."""
        return [self._events, self._rejected, self._levels, self._errors]
