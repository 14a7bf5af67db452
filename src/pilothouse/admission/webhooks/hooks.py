"""Webhook configurations in the form that requests are matched against, made once for each change of one."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.machinery import labels
from pilothouse.machinery.labels import Selector, SelectorError
from pilothouse.storage.cacher import Entry

if TYPE_CHECKING:
    from pilothouse.admission.manifests.loading import Loaded
    from pilothouse.admission.manifests.source import ManifestSource
    from pilothouse.admission.webhooks.match_conditions import MatchConditions

_COMPILED: Final = "webhooks"
EQUIVALENT: Final = "Equivalent"
IGNORE: Final = "Ignore"
IF_NEEDED: Final = "IfNeeded"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what kinds of requests it speaks of. ``*`` stands for everything."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Resource and subresource."""
    scope: str


@dataclass(frozen=True, slots=True)
class Client:
    """Where a webhook is: a URL, or a service."""

    url: str = ""
    namespace: str = ""
    service: str = ""
    port: int = 443
    path: str = ""
    authorities: bytes = b""


@dataclass(eq=False, slots=True)
class Hook:
    """One webhook of a configuration."""

    uid: str
    """Tells it apart from all others, and stays the same while its configuration keeps its place."""
    configuration: str
    name: str
    client: Client
    rules: tuple[Rule, ...]
    namespaces: Selector
    objects: Selector
    ignores_failure: bool
    equivalent: bool
    side_effects: str | None
    seconds: int | None
    versions: tuple[str, ...]
    reinvoked: bool
    conditions: MatchConditions | None = None


class Hooks:
    """All webhooks of one kind of configuration: those from files, then the stored ones, each by name and in order."""

    def __init__(self, environment: Environment, resource: str, static: ManifestSource | None = None) -> None:
        self._environment = environment
        self._configurations = environment.objects("admissionregistration.k8s.io", "v1", resource)
        self.source = static
        self._loaded: Loaded | None = None
        self._static: tuple[Hook, ...] = ()
        self._joined: tuple[object, object, tuple[Hook, ...]] = (None, None, ())

    @property
    def is_empty(self) -> bool:
        """Whether there are none for sure."""
        return self.source is None and self._configurations.is_empty

    @property
    def decisive(self) -> tuple[Objects, ...]:
        """What has to change before there can be some where there were none."""
        return (self._configurations,)

    async def current(self) -> Sequence[Hook]:
        """The webhooks as they are now."""
        configurations = self._configurations
        await configurations.ready()
        stored = configurations.remembered(_COMPILED, self._collect)
        if self.source is None:
            return stored
        static = self.static()
        if self._joined[0] is not static or self._joined[1] is not stored:
            self._joined = (static, stored, static + stored)
        return self._joined[2]

    def static(self) -> tuple[Hook, ...]:
        """Those from files."""
        if self.source is not None and self.source.loaded is not self._loaded:
            self._loaded = self.source.loaded
            self._static = tuple(
                hook
                for objects in self._loaded.objects.values()
                for obj in objects
                for hook in self._read(obj, obj["metadata"]["name"], "manifest/")
            )
        return self._static

    def _collect(self) -> tuple[Hook, ...]:
        entries = self._configurations.entries()
        return tuple(hook for entry in entries for hook in Objects.derived(entry, _COMPILED, self._compile))

    def _compile(self, entry: Entry) -> tuple[Hook, ...]:
        return self._read(self._configurations.store.decode(entry), entry.name)

    def _read(self, configuration: dict[str, Any], owner: str, place: str = "") -> tuple[Hook, ...]:
        seen: dict[str, int] = {}
        hooks = []
        for raw in configuration.get("webhooks") or ():
            name = raw.get("name", "")
            uid = f"{place}{owner}/{name}/{seen.get(name, 0)}"
            seen[name] = seen.get(name, 0) + 1
            hooks.append(_read_hook(raw, uid, owner, self._conditions(raw)))
        return tuple(hooks)

    def _conditions(self, raw: dict[str, Any]) -> MatchConditions | None:
        given = raw.get("matchConditions")
        if not given:
            return None
        # Brings the whole expression language along, which few servers need.
        from pilothouse.admission.webhooks.match_conditions import MatchConditions

        return MatchConditions(given, self._environment.authorizer)


def _read_hook(raw: dict[str, Any], uid: str, configuration: str, conditions: MatchConditions | None) -> Hook:
    return Hook(
        uid=uid,
        configuration=configuration,
        name=raw.get("name", ""),
        client=_read_client(raw.get("clientConfig") or {}),
        rules=tuple(read_rule(rule) for rule in raw.get("rules") or ()),
        namespaces=read_selector(raw.get("namespaceSelector")),
        objects=read_selector(raw.get("objectSelector")),
        ignores_failure=raw.get("failurePolicy") == IGNORE,
        equivalent=raw.get("matchPolicy") == EQUIVALENT,
        side_effects=raw.get("sideEffects"),
        seconds=raw.get("timeoutSeconds"),
        versions=tuple(raw.get("admissionReviewVersions") or ()),
        reinvoked=raw.get("reinvocationPolicy") == IF_NEEDED,
        conditions=conditions,
    )


def read_rule(raw: dict[str, Any]) -> Rule:
    """A rule as configurations and policies write it."""
    pairs = []
    for text in raw.get("resources") or ():
        resource, _, subresource = text.partition("/")
        pairs.append((resource, subresource))
    return Rule(
        frozenset(raw.get("operations") or ()),
        frozenset(raw.get("apiGroups") or ()),
        frozenset(raw.get("apiVersions") or ()),
        tuple(pairs),
        raw.get("scope") or "*",
    )


def _read_client(raw: dict[str, Any]) -> Client:
    try:
        authorities = base64.b64decode(raw.get("caBundle") or "")
    except (binascii.Error, ValueError):
        authorities = b""
    service = raw.get("service")
    if service is None:
        return Client(url=raw.get("url") or "", authorities=authorities)
    return Client(
        namespace=service.get("namespace", ""),
        service=service.get("name", ""),
        port=service.get("port") or 443,
        path=service.get("path") or "",
        authorities=authorities,
    )


def read_selector(raw: dict[str, Any] | None) -> Selector:
    """A selector; what validation should have refused selects nothing."""
    try:
        return labels.from_object(raw if raw is not None else {})
    except SelectorError:
        return labels.from_object(None)
