"""Every fifteen seconds for each autoscaler: read the scale, ask the metrics, write the scale and the status."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Final, NoReturn

from pilothouse.controllers.autoscaling.behavior import Decision, History, limit, stabilize
from pilothouse.controllers.autoscaling.metrics import Metrics
from pilothouse.controllers.autoscaling.proposals import Tolerances
from pilothouse.controllers.autoscaling.sources import MetricFailed, MetricSources, Proposal, Target
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.discovery import discover
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery import errors, labels
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import parse
from pilothouse.machinery.times import format_time

logger = logging.getLogger(__name__)
_ACCOUNT: Final = "horizontal-pod-autoscaler"
_ATTEMPTS: Final = 5


class ScalingFailed(Exception):
    """An autoscaler can do nothing in this round; its status says why."""


class Autoscalers:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock, self._period = context.clock, context.settings.autoscaler_period
        self._api = context.client(_ACCOUNT)
        self._client = self._api.of("autoscaling", "v2", "horizontalpodautoscalers")
        self._autoscalers = context.informers.of("autoscaling", "v2", "horizontalpodautoscalers")
        self._pods = context.informers.of("", "v1", "pods")
        self._events = context.recorder("horizontal-pod-autoscaler", _ACCOUNT)
        self._sources = MetricSources(Metrics(self._api))
        self._histories: dict[Key, History] = {}
        self._selectors: dict[Key, labels.Selector] = {}
        self.controller: Controller[Key] = Controller(
            "horizontal-pod-autoscaler-controller",
            self._reconcile,
            workers=5,
            wait_for=[self._autoscalers, self._pods],
            clock=context.clock,
        )
        add = self.controller.queue.add
        self._autoscalers.add_handler(
            lambda obj: add(key_of(obj)),
            lambda old, new: self.controller.queue.add_after(key_of(new), self._period),
            lambda obj: add(key_of(obj)),
            name=_ACCOUNT,
        )

    async def _reconcile(self, key: Key) -> float | None:
        """A round that fails is not repeated at once: metrics take their time too."""
        known = self._autoscalers.lister.get(*key)
        if known is None:
            self._histories.pop(key, None)
            self._selectors.pop(key, None)
            return None
        autoscaler = copy_of(known)
        try:
            await self._scale(key, autoscaler)
        except ScalingFailed as error:
            logger.debug("%s/%s: %s", *key, error)
        if (known.get("status") or {}) != (autoscaler.get("status") or {}):
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                await self._client.update_status(autoscaler)
        return self._period

    # Scaling

    async def _scale(self, key: Key, autoscaler: Object) -> None:
        scales, scale = await self._read_scale(key, autoscaler)
        text = "the HPA controller was able to get the target's current scale"
        self._say(autoscaler, "AbleToScale", True, "SucceededGetScale", text)
        spec = autoscaler["spec"]
        current = (scale.get("spec") or {}).get("replicas") or 0
        history = self._histories.setdefault(key, History())
        if not history.recommendations:
            history.recommendations.append((self._clock.monotonic(), current))
        least, most = spec.get("minReplicas", 1), spec["maxReplicas"]
        why, shown = "", None
        if current == 0 and not self._may_leave_zero(autoscaler, least):
            text = "scaling is disabled since the replica count of the target is zero"
            self._say(autoscaler, "ScalingActive", False, "ScalingDisabled", text)
            self._set_status(autoscaler, current, 0)
            return
        if current > most:
            desired, why = most, "Current number of replicas above Spec.MaxReplicas"
        elif 0 < current < least:
            desired, why = least, "Current number of replicas below Spec.MinReplicas"
        else:
            desired, why, shown = await self._by_metrics(key, autoscaler, scale, current, least)
        if desired != current:
            await self._write_scale(autoscaler, scales, scale, current, desired, why, shown)
            if spec.get("behavior") is not None:
                history.scaled(current, desired, self._clock.monotonic(), spec["behavior"])
            self._note_zero(autoscaler, current, desired, least)
        self._set_status(autoscaler, current, desired, shown, rescaled=desired != current)

    def _may_leave_zero(self, autoscaler: Object, least: int) -> bool:
        """Only what this controller has scaled to zero comes back by itself."""
        was_ours = (condition_of(autoscaler, "ScaledToZero") or {}).get("status") == "True"
        return was_ours and (least != 0 or _has_metrics_without_pods(autoscaler))

    def _note_zero(self, autoscaler: Object, current: int, desired: int, least: int) -> None:
        if current > 0 and desired == 0 and least == 0 and _has_metrics_without_pods(autoscaler):
            text = "the HPA controller scaled the workload to zero"
            self._say(autoscaler, "ScaledToZero", True, "ScaledToZero", text)
        else:
            text = "the HPA controller did not scale the workload to zero"
            self._say(autoscaler, "ScaledToZero", False, "NotScaledToZero", text)

    async def _read_scale(self, key: Key, autoscaler: Object) -> tuple[ResourceClient, Object]:
        reference = autoscaler["spec"]["scaleTargetRef"]
        group = (reference.get("apiVersion") or "").rpartition("/")[0]
        why = f'no matches for kind "{reference["kind"]}" in group "{group}"'
        for each in (await discover(self._api)).preferred:
            if (each.gvr.group, each.kind) != (group, reference["kind"]):
                continue
            client = self._api.of(group, each.gvr.version, each.gvr.resource)
            try:
                return client, await client.get(key[0], reference["name"], "scale")
            except errors.StatusError as error:
                why = error.message
                break
        self._events.event(autoscaler, "Warning", "FailedGetScale", why)
        text = f"the HPA controller was unable to get the target's current scale: {why}"
        self._say(autoscaler, "AbleToScale", False, "FailedGetScale", text)
        raise ScalingFailed(why)

    async def _write_scale(
        self, autoscaler: Object, scales: ResourceClient, scale: Object, current: int, desired: int, why: str,
        shown: list[dict[str, Any]] | None,
    ) -> None:  # fmt: skip
        metadata = scale["metadata"]
        for attempt in range(_ATTEMPTS):
            changed = copy_of(scale)
            changed.setdefault("spec", {})["replicas"] = desired
            try:
                await scales.update(changed, subresource="scale")
                break
            except errors.StatusError as error:
                if isinstance(error, errors.Conflict) and attempt < _ATTEMPTS - 1:
                    scale = await scales.get(metadata["namespace"], metadata["name"], "scale")
                    continue
                text = f"New size: {desired}; reason: {why}; error: {error.message}"
                self._events.event(autoscaler, "Warning", "FailedRescale", text)
                text = f"the HPA controller was unable to update the target scale: {error.message}"
                self._say(autoscaler, "AbleToScale", False, "FailedUpdateScale", text)
                self._set_status(autoscaler, current, None, shown)
                raise ScalingFailed(error.message) from error
        text = f"the HPA controller was able to update the target scale to {desired}"
        self._say(autoscaler, "AbleToScale", True, "SucceededRescale", text)
        self._events.event(autoscaler, "Normal", "SuccessfulRescale", f"New size: {desired}; reason: {why}")

    # Metrics

    async def _by_metrics(
        self, key: Key, autoscaler: Object, scale: Object, current: int, least: int
    ) -> tuple[int, str, list[dict[str, Any]]]:
        best, shown = await self._propose(key, autoscaler, scale, current)
        spec, now = autoscaler["spec"], self._clock.monotonic()
        why = ""
        if best.replicas > current:
            why = f"{best.metric} above target"
        elif best.replicas < current:
            why = "All metrics below target"
        behavior, history = spec.get("behavior"), self._histories[key]
        stable = stabilize(history, current, best.replicas, behavior, now)
        self._say(autoscaler, "AbleToScale", True, *stable.why)
        decision: Decision = limit(history, current, stable.replicas, least, spec["maxReplicas"], behavior, now)
        self._say(autoscaler, "ScalingLimited", decision.replicas != stable.replicas, *decision.why)
        if current == 0 and decision.replicas < least:
            return least, why or "Current number of replicas below Spec.MinReplicas", shown
        return decision.replicas, why, shown

    async def _propose(
        self, key: Key, autoscaler: Object, scale: Object, current: int
    ) -> tuple[Proposal, list[dict[str, Any]]]:
        """The largest of all proposals. Fewer replicas than now are believed only if every metric is known."""
        target = self._target(key, autoscaler, scale, current)
        metrics = autoscaler["spec"].get("metrics") or []
        best: Proposal | None = None
        failures: list[MetricFailed] = []
        shown: list[dict[str, Any]] = []
        for metric in metrics:
            try:
                found = await self._sources.propose(metric, target, _tolerances(autoscaler), self._clock.now())
            except MetricFailed as error:
                self._events.event(autoscaler, "Warning", error.reason, error.told)
                # The one that was raised knows all frames that asked; there may be ten thousand.
                failures.append(MetricFailed(error.reason, error.told, str(error)))
                shown.append({"type": ""})
                continue
            shown.append(found.status)
            if best is None or found.replicas > best.replicas:
                best = found
        if best is None or (failures and best.replicas < current):
            self._give_up(autoscaler, current, failures, shown, len(metrics))
        text = f"the HPA was able to successfully calculate a replica count from {best.metric}"
        self._say(autoscaler, "ScalingActive", True, "ValidMetricFound", text)
        return best, shown

    def _give_up(
        self, autoscaler: Object, current: int, failures: list[MetricFailed], shown: list[dict[str, Any]], total: int
    ) -> NoReturn:
        first = failures[0] if failures else None
        text = "no metrics"
        if first is not None:
            why = f"the HPA was unable to compute the replica count: {first.told}"
            self._say(autoscaler, "ScalingActive", False, first.reason, why)
            text = f"invalid metrics ({len(failures)} invalid out of {total}), first error is: {first}"
        self._events.event(autoscaler, "Warning", "FailedComputeMetricsReplicas", text)
        self._set_status(autoscaler, current, None, shown)
        raise ScalingFailed(text)

    def _target(self, key: Key, autoscaler: Object, scale: Object, current: int) -> Target:
        """The pods that are scaled. They must be told apart from those of other autoscalers."""
        status = scale.get("status") or {}
        text = status.get("selector") or ""
        if not text:
            self._refuse(autoscaler, current, "SelectorRequired", "selector is required")
        try:
            selector = labels.parse(text)
        except labels.SelectorError as error:
            why = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._refuse(autoscaler, current, "InvalidSelector", why)
        self._selectors[key] = selector
        pods = self._pods.lister.list(key[0], selector)
        others = [each for each in self._selectors if each[0] == key[0] and each != key]
        for other in others:
            matches = self._selectors[other].matches
            if any(matches(pod["metadata"].get("labels") or {}) for pod in pods):
                names = " ".join(f"{{{name} {namespace}}}" for namespace, name in sorted((key, other)))
                why = f"pods by selector {text} are controlled by more than one HPA (e.g. [{names}])"
                self._refuse(autoscaler, current, "AmbiguousSelector", why)
        return Target(key[0], current, status.get("replicas") or 0, selector, pods)

    def _refuse(self, autoscaler: Object, current: int, reason: str, why: str) -> NoReturn:
        self._events.event(autoscaler, "Warning", reason, why)
        if reason == "SelectorRequired":
            missing = "the HPA target's scale is missing a selector"
            self._say(autoscaler, "ScalingActive", False, "InvalidSelector", missing)
        else:
            self._say(autoscaler, "ScalingActive", False, reason, why)
        self._events.event(autoscaler, "Warning", "FailedComputeMetricsReplicas", why)
        self._set_status(autoscaler, current, None)
        raise ScalingFailed(why)

    # Status

    def _say(self, autoscaler: Object, type: str, is_true: bool, reason: str, message: str) -> None:
        """Set a condition; its time is that of the last change of its status."""
        conditions = autoscaler.setdefault("status", {}).setdefault("conditions", [])
        known = next((each for each in conditions if each["type"] == type), None)
        if known is None:
            known = {"type": type}
            conditions.append(known)
        status = "True" if is_true else "False"
        if known.get("status") != status:
            known["lastTransitionTime"] = format_time(self._clock.now())
        known |= {"status": status, "reason": reason, "message": message}

    def _set_status(
        self,
        autoscaler: Object,
        current: int,
        desired: int | None,
        shown: list[dict[str, Any]] | None = None,
        *,
        rescaled: bool = False,
    ) -> None:
        status = autoscaler.setdefault("status", {})
        status["currentReplicas"] = current
        status["desiredReplicas"] = status.get("desiredReplicas", 0) if desired is None else desired
        status.pop("currentMetrics", None)
        if shown:
            status["currentMetrics"] = shown
        status["observedGeneration"] = autoscaler["metadata"].get("generation") or 0
        if rescaled:
            status["lastScaleTime"] = format_time(self._clock.now())


def _tolerances(autoscaler: Object) -> Tolerances:
    behavior = autoscaler["spec"].get("behavior") or {}
    down, up = ((behavior.get(name) or {}).get("tolerance") for name in ("scaleDown", "scaleUp"))
    own = Tolerances()
    return Tolerances(
        own.down if down is None else parse(str(down)).as_approximate_float(),
        own.up if up is None else parse(str(up)).as_approximate_float(),
    )


def _has_metrics_without_pods(autoscaler: Object) -> bool:
    return any(each["type"] in ("Object", "External") for each in autoscaler["spec"].get("metrics") or ())
