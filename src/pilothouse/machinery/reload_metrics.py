"""How often configuration files were read again, counted as kube-apiserver does."""

from __future__ import annotations

import hashlib
import time

from pilothouse.machinery.metrics import Counter, Gauge, Instrument


def hashed(text: str) -> str:
    """How a name that need not be shown stands in a label."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" if text else ""


class ReloadMetrics:
    """How often a configuration file was read again, and what is in force."""

    def __init__(self, subject: str, words: str, server: str = "") -> None:
        prefix, self._server = f"apiserver_{subject}_config_controller", hashed(server)
        labels = ("status", "apiserver_id_hash")
        self._count = Counter(f"{prefix}_automatic_reloads_total", f"[BETA] Reloads of the {words}.", labels)
        self._last = Gauge(
            f"{prefix}_automatic_reload_last_timestamp_seconds", f"[BETA] Last reload of the {words}.", labels
        )
        self._config = Gauge(
            f"{prefix}_last_config_info", f"[ALPHA] The {words} in force.", ("apiserver_id_hash", "hash")
        )

    def in_force(self, content: bytes) -> None:
        """This content is used from now on."""
        self._config.forget()
        self._config.labelled(self._server, f"sha256:{hashlib.sha256(content).hexdigest()}").value = 1

    def note(self, status: str) -> None:
        """A reload was a ``success`` or a ``failure``."""
        self._count.labelled(status, self._server).value += 1
        self._last.labelled(status, self._server).value = time.time()

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._count, self._last, self._config
