"""What each metric of an autoscaler asks for, and how its current value is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pilothouse.controllers.autoscaling.metrics import Metrics
from pilothouse.controllers.autoscaling.proposals import (
    NoProposal,
    Readings,
    Tolerances,
    average,
    counted,
    group,
    propose,
    propose_for_total,
    propose_per_pod,
    requests_of,
    utilization,
)
from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import BINARY_SI, DECIMAL_SI, MILLI, Quantity, parse
from pilothouse.machinery.times import Instant

_NO_PODS: Final = "no pods returned by selector while calculating replica count"


class MetricFailed(NoProposal):
    """A metric that cannot be had: the reason for its condition and event, and what they say."""

    def __init__(self, reason: str, told: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.told = reason, told


@dataclass(frozen=True, slots=True)
class Target:
    """What is scaled: how many replicas it wants and has, and its pods."""

    namespace: str
    wanted: int
    existing: int
    selector: labels.Selector
    pods: list[Object]


@dataclass(frozen=True, slots=True)
class Proposal:
    """So many replicas, by this metric, whose value is shown so."""

    replicas: int
    metric: str
    status: dict[str, Any]


class MetricSources:
    """Asks the metrics APIs on behalf of one kind of source each."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._kinds = {
            "Resource": (self._resource, "resource", "FailedGetResourceMetric"),
            "ContainerResource": (self._resource, "containerResource", "FailedGetContainerResourceMetric"),
            "Pods": (self._pods, "pods", "FailedGetPodsMetric"),
            "Object": (self._object, "object", "FailedGetObjectMetric"),
            "External": (self._external, "external", "FailedGetExternalMetric"),
        }

    async def propose(self, metric: Object, target: Target, tolerances: Tolerances, now: Instant) -> Proposal:
        """What a metric asks for. Raises MetricFailed."""
        kind = metric["type"]
        if kind not in self._kinds:
            text = f'unknown metric source type "{kind}"'
            raise MetricFailed("InvalidMetricSourceType", text, text)
        ask, field, reason = self._kinds[kind]
        source = metric[field]
        try:
            return await ask(field, source, target, tolerances, now)
        except NoProposal as error:
            raise MetricFailed(reason, str(error), f"failed to get {_described(kind, source)}: {error}") from error

    async def _resource(
        self, field: str, source: Object, target: Target, tolerances: Tolerances, now: Instant
    ) -> Proposal:
        name, container, wanted = source["name"], source.get("container") or "", source["target"]
        by_value = wanted.get("averageValue") is not None
        what = "usage" if by_value else "utilization"
        try:
            readings = await self._readings(name, target, container)
            groups = group(target.pods, readings, name, now)
            known = counted(readings, groups)
            status: dict[str, Any] = {"name": name, **({"container": container} if container else {})}
            if by_value:
                amount = parse(str(wanted["averageValue"])).milli_value()
                replicas = propose(
                    target.wanted, readings, groups, lambda each: average(each) / amount, lambda pod: amount, tolerances
                )
                status["current"] = {"averageValue": _shown(average(known), name)}
                return Proposal(replicas, f"{name} resource", _status(field, status))
            percent = wanted.get("averageUtilization")
            if percent is None:
                raise NoProposal(
                    "invalid resource metric source: neither an average utilization target nor an average value "
                    "(usage) target was set"
                )
            requests = requests_of(target.pods, container, name)
            now_percent, mean = utilization(known, requests)
            replicas = propose(
                target.wanted,
                readings,
                groups,
                lambda each: utilization(each, requests)[0] / percent,
                lambda pod: requests[pod] * max(100, percent) // 100,
                tolerances,
            )
        except NoProposal as error:
            raise NoProposal(f"failed to get {name} {what}: {error}") from error
        status["current"] = {"averageUtilization": now_percent, "averageValue": _shown(mean, name)}
        kind = "container resource" if container else "resource"
        return Proposal(replicas, f"{name} {kind} utilization (percentage of request)", _status(field, status))

    async def _readings(self, name: str, target: Target, container: str) -> Readings:
        try:
            readings = await self._metrics.of_resource(name, target.namespace, target.selector, container)
        except NoProposal as error:
            raise NoProposal(f"unable to get metrics for resource {name}: {error}") from error
        if not target.pods:
            raise NoProposal(_NO_PODS)
        return readings

    async def _pods(self, field: str, source: Object, target: Target, tolerances: Tolerances, now: Instant) -> Proposal:
        metric = source["metric"]
        amount = parse(str(source["target"]["averageValue"])).milli_value()
        try:
            readings = await self._metrics.of_pods(metric["name"], target.namespace, target.selector, _selector(metric))
        except NoProposal as error:
            raise NoProposal(f"unable to get metric {metric['name']}: {error}") from error
        if not target.pods:
            raise NoProposal(_NO_PODS)
        groups = group(target.pods, readings, "", now)
        replicas = propose(
            target.wanted, readings, groups, lambda each: average(each) / amount, lambda pod: amount, tolerances
        )
        status = {"metric": metric, "current": {"averageValue": _shown(average(counted(readings, groups)))}}
        return Proposal(replicas, f"pods metric {metric['name']}", _status(field, status))

    async def _object(
        self, field: str, source: Object, target: Target, tolerances: Tolerances, now: Instant
    ) -> Proposal:
        metric, about, wanted = source["metric"], source["describedObject"], source["target"]
        try:
            usage = await self._metrics.of_object(metric["name"], target.namespace, about, _selector(metric))
        except NoProposal as error:
            where = f"{about['kind']} {target.namespace}/{about['name']}"
            raise NoProposal(f"unable to get metric {metric['name']} on {where}: {error}") from error
        replicas, current = _for_amount(usage, wanted, target, tolerances, "object")
        text = f"{about['kind']} metric {metric['name']}"
        if "averageValue" in current:
            text = f"external metric {metric['name']}({_printed(metric.get('selector'))})"
        return Proposal(
            replicas, text, _status(field, {"describedObject": about, "metric": metric, "current": current})
        )

    async def _external(
        self, field: str, source: Object, target: Target, tolerances: Tolerances, now: Instant
    ) -> Proposal:
        metric, wanted = source["metric"], source["target"]
        shown = _printed(metric.get("selector"))
        try:
            usage = await self._metrics.of_nothing(metric["name"], target.namespace, _selector(metric))
        except NoProposal as error:
            text = f"unable to get external metric {target.namespace}/{metric['name']}/{shown}: {error}"
            raise NoProposal(text) from error
        replicas, current = _for_amount(usage, wanted, target, tolerances, "external")
        text = f"external metric {metric['name']}({shown})"
        return Proposal(replicas, text, _status(field, {"metric": metric, "current": current}))


def _for_amount(
    usage: int, wanted: Object, target: Target, tolerances: Tolerances, kind: str
) -> tuple[int, dict[str, str]]:
    if wanted.get("averageValue") is not None:
        amount = parse(str(wanted["averageValue"])).milli_value()
        replicas = propose_per_pod(target.existing, usage, amount, tolerances)
        mean = -(-usage // target.existing) if target.existing else usage
        return replicas, {"averageValue": _shown(mean)}
    if wanted.get("value") is not None:
        amount = parse(str(wanted["value"])).milli_value()
        return propose_for_total(target.wanted, usage, amount, target.pods, tolerances), {"value": _shown(usage)}
    raise NoProposal(f"invalid {kind} metric source: neither a value target nor an average value target was set")


def _described(kind: str, source: Object) -> str:
    if kind == "Resource":
        return f"{source['name']} resource metric value"
    if kind == "ContainerResource":
        return f"{source['container']} container metric value"
    return f"{kind.lower()} metric value" if kind != "External" else f"{source['metric']['name']} external metric value"


def _status(field: str, status: dict[str, Any]) -> dict[str, Any]:
    return {"type": field[0].upper() + field[1:], field: status}


def _selector(metric: Object) -> labels.Selector:
    """Without a selector everything is meant."""
    selector = metric.get("selector")
    return labels.parse("") if selector is None else labels.from_object(selector)


def _printed(selector: Object | None) -> str:
    """A selector as Go prints its structure, which is what messages show."""
    if selector is None:
        return "nil"
    pairs = "".join(f"{name}: {value}," for name, value in sorted((selector.get("matchLabels") or {}).items()))
    rules = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{rules}}},}}"
    )


def _shown(milli: int, resource: str = "") -> str:
    return str(Quantity(milli, MILLI, BINARY_SI if resource == "memory" else DECIMAL_SI))
