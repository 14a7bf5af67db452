"""Policies with their bindings, in the form that requests are matched against.

Made again only after a policy or a binding changed; a policy that stays as it is keeps its compiled expressions, which
are made when a request first needs them. Without bindings nothing is made at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.policies.criteria import Criteria, read_criteria
from pilothouse.admission.webhooks.hooks import IF_NEEDED, IGNORE
from pilothouse.storage.cacher import Entry

if TYPE_CHECKING:
    from pilothouse.admission.manifests.loading import Loaded
    from pilothouse.admission.manifests.source import ManifestSource

T = TypeVar("T")
_FORM: Final = "policies"
_GROUP: Final = "admissionregistration.k8s.io"


@dataclass(eq=False, slots=True)
class Binding:
    """Where a policy holds, with which params, and what its refusals lead to."""

    name: str
    policy: str
    criteria: Criteria | None
    param_ref: dict[str, Any] | None
    actions: tuple[str, ...]


class Definition(Generic[T]):
    """A policy without its bindings."""

    def __init__(self, name: str, spec: dict[str, Any], compile_policy: Callable[[dict[str, Any]], T]) -> None:
        self.name = name
        self.criteria = read_criteria(spec.get("matchConstraints") or {})
        self.ignores_failure = spec.get("failurePolicy") == IGNORE
        self.param_kind: dict[str, str] | None = spec.get("paramKind")
        self.reinvoked = spec.get("reinvocationPolicy") == IF_NEEDED
        self._spec, self._compile = spec, compile_policy
        self._compiled: T | None = None

    @property
    def compiled(self) -> T:
        """Its expressions, compiled at the first asking."""
        if self._compiled is None:
            self._compiled = self._compile(self._spec)
        return self._compiled


@dataclass(eq=False, slots=True)
class Policy(Generic[T]):
    """A policy and all its bindings."""

    definition: Definition[T]
    bindings: list[Binding]


class Policies(Generic[T]):
    """All policies of one kind that are bound, by name."""

    def __init__(
        self,
        environment: Environment,
        policies: str,
        bindings: str,
        compile_policy: Callable[[dict[str, Any]], T],
        static: ManifestSource | None = None,
    ) -> None:
        self.source = static
        self._loaded: Loaded | None = None
        self._static: tuple[Policy[T], ...] = ()
        self._policies = environment.objects(_GROUP, "v1", policies)
        self._bindings = environment.objects(_GROUP, "v1", bindings)
        self._compile = compile_policy
        self._state: tuple[int, int, tuple[Policy[T], ...] | None] = (-1, -1, None)
        self._known: tuple[Policy[T], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is bound for sure."""
        return self.source is None and self._bindings.is_empty

    @property
    def decisive(self) -> tuple[Objects, ...]:
        """What has to change before something can be bound where nothing was."""
        return (self._bindings,)

    async def current(self) -> Sequence[Policy[T]]:
        """The policies as they are now."""
        if not (self._bindings.is_loaded and self._policies.is_loaded):
            await self._bindings.ready()
            await self._policies.ready()
        static = self.static()
        policies, bindings = self._policies.revision, self._bindings.revision
        known = self._state
        if policies != known[0] or bindings != known[1] or static is not known[2]:
            self._known, self._state = static + self._collect(), (policies, bindings, static)
        return self._known

    def static(self) -> tuple[Policy[T], ...]:
        """Those from files."""
        if self.source is not None and self.source.loaded is not self._loaded:
            self._loaded = self.source.loaded
            policies, bindings = self._loaded.objects.values()
            bound: dict[str, list[Binding]] = {}
            for obj in bindings:
                binding = _read_binding(obj["metadata"]["name"], obj["spec"])
                bound.setdefault(binding.policy, []).append(binding)
            self._static = tuple(
                Policy(Definition(name, obj["spec"], self._compile), bound[name])
                for obj in policies
                if (name := obj["metadata"]["name"]) in bound
            )
        return self._static

    def _collect(self) -> tuple[Policy[T], ...]:
        bound: dict[str, list[Binding]] = {}
        for entry in self._bindings.entries():
            binding = Objects.derived(entry, _FORM, self._read_binding)
            bound.setdefault(binding.policy, []).append(binding)
        if not bound:
            return ()
        return tuple(
            Policy(Objects.derived(entry, _FORM, self._read_policy), bound[entry.name])
            for entry in self._policies.entries()
            if entry.name in bound
        )

    def _read_policy(self, entry: Entry) -> Definition[T]:
        return Definition(entry.name, self._policies.store.decode(entry).get("spec") or {}, self._compile)

    def _read_binding(self, entry: Entry) -> Binding:
        return _read_binding(entry.name, self._bindings.store.decode(entry).get("spec") or {})


def _read_binding(name: str, spec: dict[str, Any]) -> Binding:
    criteria = spec.get("matchResources")
    return Binding(
        name=name,
        policy=spec.get("policyName", ""),
        criteria=read_criteria(criteria) if criteria is not None else None,
        param_ref=spec.get("paramRef"),
        actions=tuple(spec.get("validationActions") or ()),
    )
