"""EventRateLimit: no more events a second than configured: in all, by namespace, by user, by source and object."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from pilothouse.admission.configuration import ConfigurationError, decoded, require_kind
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, aggregate, invalid, not_supported
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.shapes import Struct, Text
from pilothouse.machinery.token_bucket import TokenBucket

_CACHE_SIZE: Final = 4096
_LONGEST_KEPT: Final = 256
Clock = Callable[[], float]


class Limit:
    """One configured limit, with a bucket for each key it meets; those not seen for long are forgotten."""

    def __init__(self, raw: dict[str, Any], clock: Clock) -> None:
        self.type: str = raw["type"]
        self._key = _KEYS[self.type]
        self._make: Callable[[], TokenBucket] = lambda: TokenBucket(raw["qps"], raw["burst"], clock)
        self._size = 1 if self.type == "Server" else raw.get("cacheSize") or _CACHE_SIZE
        self._buckets: OrderedDict[str | bytes, TokenBucket] = OrderedDict()

    def refuse(self, attributes: Attributes) -> str:
        """Why an event is too much; empty if it is not."""
        key = self._key(attributes)
        # A name may be a megabyte, and there may be thousands of them.
        known = key if len(key) <= _LONGEST_KEPT else sha256(key.encode(errors="surrogatepass")).digest()
        bucket = self._buckets.get(known)
        if bucket is None:
            bucket = self._buckets[known] = self._make()
            if len(self._buckets) > self._size:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(known)
        return "" if bucket.take() else f"limit reached on type {self.type} for key {key}"


class EventRateLimit(Plugin):
    """See the module's docstring."""

    name = "EventRateLimit"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "events")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._limits = [Limit(raw, environment.monotonic) for raw in _read(configuration)]

    async def validate(self, attributes: Attributes) -> None:
        """Count the event against every limit."""
        if attributes.dry_run:
            return
        errs = [why for limit in self._limits if (why := limit.refuse(attributes))]
        if errs:
            raise errors.StatusError(429, "TooManyRequests", f"Too many requests: {aggregate(errs)}")


def _source_and_object(attributes: Attributes) -> str:
    event = attributes.object or {}
    source, about = event.get("source") or {}, event.get("involvedObject") or {}
    parts = [source.get("component", ""), source.get("host", "")]
    return "".join(parts + [about.get(field, "") for field in ("kind", "namespace", "name", "uid", "apiVersion")])


_KEYS: Final[dict[str, Callable[[Attributes], str]]] = {
    "Namespace": lambda attributes: attributes.namespace,
    "Server": lambda attributes: "",
    "SourceAndObject": _source_and_object,
    "User": lambda attributes: str(attributes.user.name),
}


_LIMIT: Final = Struct("Limit", {"type": Text("LimitType"), "qps": int, "burst": int, "cacheSize": int})
_SHAPE: Final = Struct("Configuration", {"apiVersion": str, "kind": str, "limits": [_LIMIT]})


def _read(configuration: Any) -> list[dict[str, Any]]:
    if configuration is None:
        return []
    require_kind(configuration, "eventratelimit.admission.k8s.io", ("v1alpha1",), "Configuration")
    limits: list[dict[str, Any]] = decoded(configuration, _SHAPE, strict=False).get("limits") or []
    path = Path("limits")
    errs: list[FieldError] = []
    if not limits:
        errs.append(invalid(path, limits, "must not be empty"))
    for position, limit in enumerate(limits):
        errs += _check(path.index(position), limit)
    if errs:
        raise ConfigurationError(aggregate(str(error) for error in errs))
    return limits


def _check(path: Path, limit: dict[str, Any]) -> list[FieldError]:
    errs = [
        invalid(path.child(field), limit.get(field, 0), "must be positive")
        for field in ("burst", "qps")
        if limit.get(field, 0) <= 0
    ]
    if limit.get("type") not in _KEYS:
        errs.insert(0, not_supported(path.child("type"), limit.get("type", ""), sorted(_KEYS)))
    if limit.get("type") != "Server" and limit.get("cacheSize", 0) < 0:
        errs.append(invalid(path.child("cacheSize"), limit["cacheSize"], "must not be negative"))
    return errs
