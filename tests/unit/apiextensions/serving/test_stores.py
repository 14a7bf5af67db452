"""A version whose objects cannot be converted is refused by the clock that the server was given."""

from __future__ import annotations

from typing import Any

from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.running_clock import RunningClock

_GROUP = "example.com"
_UNREACHABLE = {
    "strategy": "Webhook",
    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}},
}


def _definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": _GROUP, "scope": "Cluster", "names": names, "versions": versions}
    return {"metadata": {"name": f"widgets.{_GROUP}"}, "spec": spec}


def test_who_is_refused_is_told_to_wait_longer_as_time_passes() -> None:
    clock = RunningClock()
    with InProcessServer(clock=clock) as server:
        server.establish(_definition())
        first, second = (f"/apis/{_GROUP}/{name}/widgets" for name in ("v1", "v2"))
        made = {"apiVersion": f"{_GROUP}/v1", "kind": "Widget", "metadata": {"name": "one"}}
        assert server.call("POST", first, made).status == 201
        crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{_GROUP}"
        merge = {"Content-Type": "application/merge-patch+json"}
        assert server.call("PATCH", crd, {"spec": {"conversion": _UNREACHABLE}}, merge).status == 200
        while server.call("GET", second).status == 200:
            pass
        clock.advance(3600.0)
        answer = server.call("GET", second)
        assert (answer.status, answer.json["details"]) == (429, {"retryAfterSeconds": 30})
