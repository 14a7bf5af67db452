"""The chain: plug-ins in order, first those that mutate, then, on the final object, those that validate.

Which plug-ins care for an operation on a resource is worked out once and looked up afterwards, together with the
metrics they are timed by. When a webhook or a policy has changed the object, all mutating plug-ins see it once more
(reinvocation), as later changes may be against what earlier plug-ins ensure.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from operator import attrgetter
from time import perf_counter
from typing import Any, Final

from pilothouse.admission.metrics import ADMIT, VALIDATE, AdmissionMetrics
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.machinery.observations import Observations
from pilothouse.machinery.workers import LONG, aside, finish

Step = Callable[[Attributes], Awaitable[None]]
IsIdle = Callable[[], bool]
_Named = tuple[Step, IsIdle | None, Observations]
ObserveStep = Callable[[str, str, Step], Step]
"""Makes a step that tells somebody of itself, from the plug-in's name, the phase and the step."""
_Key = tuple[str, GroupVersionResource, str]
_REVISION: Final = attrgetter("changed_revision")
_FIRST_BOUND: Final = 0.005
"""Of the buckets that plug-ins and phases are counted in; nearly all stay below it."""


class _Phase:
    """The plug-ins that one kind of request concerns in one phase."""

    __slots__ = (
        "__weakref__", "_active", "_idle", "_idle_runs", "_metrics", "_passed", "_plugins", "_revisions", "_watched",
        "_what", "steps",
    )  # fmt: skip

    def __init__(
        self,
        phase: str,
        plugins: Sequence[Plugin],
        key: _Key,
        metrics: AdmissionMetrics,
        observe: ObserveStep | None = None,
    ) -> None:
        operation, resource, subresource = key
        self._plugins = [
            plugin
            for plugin in plugins
            if getattr(type(plugin), phase) is not getattr(Plugin, phase)
            and plugin.concerns(operation, resource.group_resource, subresource)
        ]
        self._metrics, self._what = metrics, (phase, operation)
        self._passed = metrics.phase(phase, operation, rejected=False)
        self.steps: tuple[_Named, ...] = tuple(
            (
                self._step(plugin, phase, observe),
                None if observe is not None or type(plugin).is_idle is Plugin.is_idle else plugin.is_idle,
                metrics.plugin(plugin.name, phase, operation, rejected=False),
            )
            for plugin in self._plugins
        )
        self._active = self.steps
        """Those that are not idle, or are to be asked each time."""
        self._idle: tuple[Observations, ...] = ()
        self._idle_runs = 0
        """How often these had nothing to say since that was written down."""
        self._watched = {
            objects.cache
            for plugin, (_, is_idle, _) in zip(self._plugins, self.steps, strict=True)
            for objects in (() if is_idle is None else plugin.idle_by())
        }
        """What it depends on who is idle."""
        self._revisions = [-1] if self._watched else []
        """As of when that was found."""
        metrics.fold_with(self)

    def _step(self, plugin: Plugin, phase: str, observe: ObserveStep | None) -> Step:
        step: Step = _aside_if_long(getattr(plugin, phase)) if plugin.only_looks else getattr(plugin, phase)
        return step if observe is None else observe(plugin.name, phase, step)

    async def run(self, attributes: Attributes) -> None:
        """Ask each plug-in; twice where that is called for."""
        clock = perf_counter
        started = before = clock()
        passed = self._passed
        if list(map(_REVISION, self._watched)) != self._revisions:
            self._find_idle()
        try:
            again = True
            while again:
                for step, is_idle, passed in self._active:
                    if is_idle is not None and is_idle():
                        passed.zeros += 1  # asked, and done in no time
                        continue
                    await step(attributes)
                    after = clock()
                    seconds = after - before
                    before = after
                    if seconds < _FIRST_BOUND:  # without a call: this happens a dozen times on every write
                        passed.zeros += 1
                        passed.total += seconds
                    else:
                        passed.observe(seconds)
                self._idle_runs += 1
                state = attributes.reinvocation
                again = state is not None and state.begin()
        except BaseException:
            self._refuse(passed, before, started)
            raise
        self._passed.observe(before - started)

    def _find_idle(self) -> None:
        """Tell apart whom to ask and who has nothing to say until something changes."""
        self.fold()
        self._revisions = list(map(_REVISION, self._watched))
        idle: list[Observations] = []
        active: list[_Named] = []
        for plugin, (step, is_idle, series) in zip(self._plugins, self.steps, strict=True):
            if is_idle is None or not plugin.idle_by():
                active.append((step, is_idle, series))
            elif is_idle():
                idle.append(series)
            else:
                active.append((step, None, series))
        self._idle, self._active = tuple(idle), tuple(active)

    def fold(self) -> None:
        """Count those that were idle as asked, and done in no time."""
        runs, self._idle_runs = self._idle_runs, 0
        for series in self._idle:
            series.zeros += runs

    def _refuse(self, asked: Observations, before: float, started: float) -> None:
        now = perf_counter()
        phase, operation = self._what
        position = next(place for place, (_, _, series) in enumerate(self.steps) if series is asked)
        plugin = self._plugins[position]
        for _, _, series in self.steps[:position]:
            if series in self._idle:
                series.zeros += 1  # it would have been asked before
        self._metrics.plugin(plugin.name, phase, operation, rejected=True).observe(now - before)
        self._metrics.phase(phase, operation, rejected=True).observe(now - started)


def _aside_if_long(hook: Callable[[Attributes], Coroutine[Any, Any, None]]) -> Step:
    async def step(attributes: Attributes) -> None:
        if attributes.weight < LONG:
            await hook(attributes)
        else:
            await aside(_finish, hook, attributes, weight=attributes.weight)

    return step


def _finish(hook: Callable[[Attributes], Coroutine[Any, Any, None]], attributes: Attributes) -> None:
    # The coroutine is made in the thread: one that is made before may never be begun, where nobody waits any more.
    finish(hook(attributes))


class AdmissionChain:
    """All plug-ins of a server, in the order they run."""

    def __init__(
        self, plugins: Sequence[Plugin], metrics: AdmissionMetrics | None = None, read: Iterable[Objects] = ()
    ) -> None:
        self.plugins = tuple(plugins)
        self._read = tuple(read)
        self.metrics = AdmissionMetrics() if metrics is None else metrics
        self._mutating: dict[_Key, _Phase] = {}
        self._validating: dict[_Key, _Phase] = {}
        self._observe: ObserveStep | None = None

    def observe(self, observe: ObserveStep | None) -> None:
        """Have every step from now on tell somebody of itself, or (None) nobody any more.

        Phases are made anew, so that steps cost nothing more while nobody wants to know.
        """
        self.metrics.fold()
        self._observe = observe
        self._mutating, self._validating = {}, {}

    def handles(self, operation: str) -> bool:
        """Whether any plug-in cares for this operation."""
        return bool(self.plugins)

    def admit(self, attributes: Attributes) -> Coroutine[Any, Any, None]:
        """Run the mutating plug-ins that this request concerns, twice if that is called for."""
        key = (attributes.operation, attributes.resource, attributes.subresource)
        phase = self._mutating.get(key)
        if phase is None:
            phase = self._mutating[key] = _Phase(ADMIT, self.plugins, key, self.metrics, self._observe)
        return phase.run(attributes)

    def validate(self, attributes: Attributes) -> Coroutine[Any, Any, None]:
        """Run the validating plug-ins that this request concerns."""
        key = (attributes.operation, attributes.resource, attributes.subresource)
        phase = self._validating.get(key)
        if phase is None:
            phase = self._validating[key] = _Phase(VALIDATE, self.plugins, key, self.metrics, self._observe)
        return phase.run(attributes)

    async def wait_ready(self) -> None:
        """Return when all objects that plug-ins decide by are loaded."""
        for objects in self._read:
            await objects.ready()

    async def reload(self) -> None:
        """Let plug-ins look for changes of their files."""
        for plugin in self.plugins:
            await plugin.reload()

    async def close(self) -> None:
        """Release what plug-ins hold."""
        for plugin in self.plugins:
            await plugin.close()
