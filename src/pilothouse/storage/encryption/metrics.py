"""What is counted about encryption at rest: transformations by resource, and the calls of key management services."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from pilothouse.machinery.metrics import Counter, Gauge, Histogram, Instrument, doubling_buckets

_TO: Final = "to_storage"
_FROM: Final = "from_storage"
_MAX_KEY_IDS: Final = 100
UNKNOWN_CODE: Final = "unknown-non-grpc"


class EncryptionMetrics:
    """The instruments of one server."""

    def __init__(self, server: str = "") -> None:
        storage, envelope = "apiserver_storage", "apiserver_envelope_encryption"
        self._operations = Counter(
            f"{storage}_transformation_operations_total",
            "[ALPHA] Values transformed.",
            ("resource", "transformation_type", "transformer_prefix", "status"),
        )
        self._seconds = Histogram(
            f"{storage}_transformation_duration_seconds",
            "[ALPHA] Seconds to transform a value.",
            ("transformation_type", "transformer_prefix"),
            doubling_buckets(5e-6, 25),
        )
        self._misses = Counter(
            f"{storage}_envelope_transformation_cache_misses_total", "[ALPHA] Seeds that had to be asked for."
        )
        # Keys were generated for every value by the first version of key management; the names are still there.
        unused: tuple[Instrument, ...] = (
            Histogram(
                f"{storage}_data_key_generation_duration_seconds",
                "[ALPHA] Seconds to generate a key.",
                (),
                doubling_buckets(5e-6, 14),
            ),
            Counter(f"{storage}_data_key_generation_failures_total", "[ALPHA] Keys that could not be generated."),
            Gauge(f"{envelope}_dek_cache_fill_percent", "[ALPHA] How full the cache of keys is.", joined="most"),
        )
        self.services = ServiceMetrics(envelope, server)
        self._all: list[Instrument] = [
            self._operations,
            self._seconds,
            self._misses,
            *unused,
            *self.services.instruments(),
        ]

    def sealed(self, resource: str, prefix: str, seconds: float, code: str = "OK") -> None:
        """A value was encrypted, or not."""
        self._note(_TO, resource, prefix, seconds, code)

    def opened(self, resource: str, prefix: str, seconds: float, code: str = "OK") -> None:
        """A value was decrypted, or not."""
        self._note(_FROM, resource, prefix or "identity", seconds, code)

    def _note(self, direction: str, resource: str, prefix: str, seconds: float, code: str) -> None:
        self._operations.labelled(resource, direction, prefix, code).value += 1
        if code == "OK":
            self._seconds.labelled(direction, prefix).observe(seconds)

    def missed(self) -> None:
        """A seed was not known."""
        self._misses.labelled().value += 1

    def instruments(self) -> list[Instrument]:
        """All of them."""
        return list(self._all)


class ServiceMetrics:
    """Calls of key management services, and the keys they name."""

    def __init__(self, prefix: str, server: str) -> None:
        self._server = _hashed(server)
        used = ("transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash")
        self._calls = Histogram(
            f"{prefix}_kms_operations_latency_seconds",
            "[ALPHA] Seconds of calls to key management services.",
            ("provider_name", "method_name", "grpc_status_code"),
            doubling_buckets(0.0001, 20),
        )
        self._keys = Counter(f"{prefix}_key_id_hash_total", "[ALPHA] Uses of keys.", used)
        self._used = Gauge(f"{prefix}_key_id_hash_last_timestamp_seconds", "[ALPHA] Last uses of keys.", used)
        self._named = Gauge(
            f"{prefix}_key_id_hash_status_last_timestamp_seconds", "[ALPHA] When keys were last named.", used[1:]
        )
        self._invalid = Counter(
            f"{prefix}_invalid_key_id_from_status_total", "[ALPHA] Wrong key ids.", ("provider_name", "error")
        )
        self._seeds = Gauge(f"{prefix}_dek_source_cache_size", "[ALPHA] Seeds known.", ("provider_name",))
        self._known: dict[str, str] = {}

    def called(self, provider: str, method: str, code: str, seconds: float) -> None:
        """A call is over."""
        self._calls.labelled(provider, method, code).observe(seconds)

    def sealed(self, provider: str, key_id: str) -> None:
        """A value was encrypted under a key."""
        self._use(_TO, provider, key_id)

    def opened(self, provider: str, key_id: str) -> None:
        """A value was decrypted that stands under a key."""
        self._use(_FROM, provider, key_id)

    def _use(self, direction: str, provider: str, key_id: str) -> None:
        labels = (direction, provider, self._hash(key_id), self._server)
        self._keys.labelled(*labels).value += 1
        self._used.labelled(*labels).value = time.time()

    def named(self, provider: str, key_id: str) -> None:
        """A service named its key."""
        self._named.labelled(provider, self._hash(key_id), self._server).value = time.time()

    def misnamed(self, provider: str, error: str) -> None:
        """A service named a key by an id that cannot be used."""
        self._invalid.labelled(provider, error).value += 1

    def remember(self, provider: str, seeds: int) -> None:
        """So many seeds are known now."""
        self._seeds.labelled(provider).value = seeds

    def _hash(self, key_id: str) -> str:
        known = self._known.get(key_id)
        if known is None:
            if len(self._known) >= _MAX_KEY_IDS:
                for instrument in (self._keys, self._used, self._named):
                    instrument.forget()
                self._known.clear()
            known = self._known[key_id] = _hashed(key_id)
        return known

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._calls, self._keys, self._used, self._named, self._invalid, self._seeds


def _hashed(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" if text else ""
