"""The metrics APIs: resource metrics, custom metrics of pods and other objects, external metrics.

Other servers serve them, behind the aggregator; what they do not answer is a ``NoProposal`` with client-go's words.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from pilothouse.controllers.autoscaling.proposals import NoProposal, Reading, Readings
from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.discovery import discover
from pilothouse.machinery import errors, quantity
from pilothouse.machinery.labels import Selector
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import SECOND, TimeError, parse_duration, parse_time

_RESOURCE: Final = "/apis/metrics.k8s.io/v1beta1"
_CUSTOM: Final = "/apis/custom.metrics.k8s.io"
_EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"
_WINDOW: Final = 60.0


class Metrics:
    """Reads metrics as the autoscaler."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def of_resource(self, resource: str, namespace: str, selector: Selector, container: str) -> Readings:
        """What pods, or one container of each, use of a resource."""
        path = f"{_RESOURCE}/namespaces/{namespace}/pods"
        items = await self._list("resource", path, {"labelSelector": str(selector)}, "pods.metrics.k8s.io")
        found = {item["metadata"]["name"]: _resource_reading(item, resource, container) for item in items}
        return {name: reading for name, reading in found.items() if reading is not None}

    async def of_pods(self, metric: str, namespace: str, selector: Selector, metric_selector: Selector) -> Readings:
        """A custom metric of pods."""
        version = await self._custom_version()
        path = f"{_CUSTOM}/{version}/namespaces/{namespace}/pods/*/{quote(metric, '')}"
        query = {"labelSelector": str(selector), "metricLabelSelector": str(metric_selector)}
        items = await self._list("custom", path, query, f"pods.{version}.custom.metrics.k8s.io")
        return {
            item["describedObject"]["name"]: Reading(
                _milli(item["value"]), _seconds(item.get("timestamp")), float(item.get("windowSeconds") or _WINDOW)
            )
            for item in items
        }

    async def of_object(self, metric: str, namespace: str, about: Object, metric_selector: Selector) -> int:
        """A custom metric of one object."""
        version = await self._custom_version()
        group = (about.get("apiVersion") or "").rpartition("/")[0]
        if (group, about["kind"]) == ("", "Namespace"):
            path = f"{_CUSTOM}/{version}/namespaces/{namespace}/metrics/{quote(metric, '')}"
        else:
            resource = await self._resource_of(group, about["kind"])
            name = quote(about["name"], "")
            path = f"{_CUSTOM}/{version}/namespaces/{namespace}/{resource}/{name}/{quote(metric, '')}"
        query = {"metricLabelSelector": str(metric_selector)}
        items = await self._list("custom", path, query, f"{version}.custom.metrics.k8s.io")
        return _milli(items[0]["value"])

    async def of_nothing(self, metric: str, namespace: str, metric_selector: Selector) -> int:
        """The sum of an external metric, which is about no object."""
        path = f"{_EXTERNAL}/namespaces/{namespace}/{quote(metric, '')}"
        query = {"labelSelector": str(metric_selector)}
        items = await self._list("external", path, query, f"{metric}.external.metrics.k8s.io")
        return min(quantity.MAX_INT64, sum(_milli(item["value"]) for item in items))

    async def _list(self, api: str, path: str, query: dict[str, str], what: str) -> list[dict[str, Any]]:
        try:
            answer = await self._client.request("GET", path, {name: each for name, each in query.items() if each})
        except errors.StatusError as error:
            text = error.message
            if isinstance(error, errors.NotFound) and not (error.details or {}).get("kind"):
                text = f"the server could not find the requested resource (get {what})"
            raise NoProposal(f"unable to fetch metrics from {api} metrics API: {text}") from error
        items: list[dict[str, Any]] = answer.get("items") or []
        if not items:
            raise NoProposal(f"no metrics returned from {api} metrics API")
        return items

    async def _custom_version(self) -> str:
        served = {each.gvr.version for each in await self._served() if each.gvr.group == "custom.metrics.k8s.io"}
        return "v1beta1" if served == {"v1beta1"} else "v1beta2"

    async def _resource_of(self, group: str, kind: str) -> str:
        for each in await self._served():
            if (each.gvr.group, each.kind) == (group, kind):
                return str(each.gvr.group_resource)
        raise NoProposal(
            f'unable to map kind {group}/{kind} to resource: no matches for kind "{kind}" in group "{group}"'
        )

    async def _served(self) -> tuple[Any, ...]:
        return (await discover(self._client)).preferred


def _resource_reading(item: Object, resource: str, container: str) -> Reading | None:
    containers = item.get("containers") or ()
    if container:
        containers = [each for each in containers if each["name"] == container]
    if not containers or any(resource not in each["usage"] for each in containers):
        return None
    used = sum(_milli(each["usage"][resource]) for each in containers)
    try:
        window = parse_duration(item.get("window") or "60s") / SECOND
    except TimeError:
        window = _WINDOW
    return Reading(used, _seconds(item.get("timestamp")), window)


def _seconds(text: str | None) -> float:
    return float(parse_time(text).seconds) if text else 0.0


def _milli(text: Any) -> int:
    return quantity.parse(str(text)).milli_value()
