"""Conversations with pods that live: bound, reporting, resized, debugged, evicted, in some order, some of it wrong."""

from __future__ import annotations

import random
from typing import Any

from differential_admission import MERGE, STRATEGIC, dump, own_space
from differential_answers import JSON, Request


def pods(choice: random.Random, names: Any) -> list[Request]:
    """Pods that are bound, report, are resized, debugged, evicted and deleted, in some order, some of it wrong."""
    _, where, made = own_space(names.name)
    resources = {"requests": {"cpu": "100m"}, "limits": choice.choice(({}, {"cpu": "200m", "memory": "1Gi"}))}
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": resources}
    if choice.random() < 0.4:
        container["resizePolicy"] = [
            {"resourceName": "cpu", "restartPolicy": choice.choice(("NotRequired", "RestartContainer"))}
        ]
    spec = {
        "containers": [container],
        "terminationGracePeriodSeconds": choice.choice((0, 30)),
        "restartPolicy": choice.choice(("Always", "Never", "OnFailure")),
    }
    if choice.random() < 0.2:
        spec["nodeName"] = "none"
    if choice.random() < 0.2:
        spec["schedulingGates"] = [{"name": "a.b/c"}]
    labels = {"app": names.name}
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": choice.choice((0, 1, "50%")), "selector": {"matchLabels": labels}},
    }
    path = f"{where}/pods/p"
    steps = [choice.choice(_STEPS)(choice, path) for _ in range(choice.randrange(3, 7))]
    budgets = f"/apis/policy/v1{where.removeprefix('/api/v1')}/poddisruptionbudgets"
    said = [made, Request("POST", f"{where}/pods", dump({"metadata": {"name": "p", "labels": labels}, "spec": spec}))]
    if choice.random() < 0.5:
        allowed = {
            "observedGeneration": 1,
            "disruptionsAllowed": choice.choice((0, 1)),
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
        }
        said += [
            Request("POST", budgets, dump(budget)),
            Request("PATCH", f"{budgets}/b/status", dump({"status": allowed}), MERGE),
        ]
    return [
        *said,
        *steps,
        Request("GET", path),
        Request("GET", f"{budgets}/b"),
        Request("DELETE", f"{path}?gracePeriodSeconds=0"),
    ]


def _bind(choice: random.Random, path: str) -> Request:
    target = {"kind": choice.choice(("Node",) * 4 + ("Pod",)), "name": choice.choice(("n1", "n1", "", "UP"))}
    return Request(
        "POST",
        f"{path}/binding",
        dump({"metadata": {"name": "p", "annotations": {"k": "v"}}, "target": target}),
        unordered=True,
    )


def _report(choice: random.Random, path: str) -> Request:
    state: dict[str, Any] = choice.choice(
        ({"running": {}}, {"waiting": {"reason": "R"}}, {"terminated": {"exitCode": 1}}, {})
    )
    known = {
        "name": choice.choice(("c", "c", "x")),
        "ready": choice.choice((True, False)),
        "restartCount": choice.choice((0, 1, -1)),
        "image": "i",
        "imageID": "",
        "state": state,
    }
    status = {
        "phase": choice.choice(("Pending", "Running", "Succeeded", "Failed", "Odd")),
        "containerStatuses": [known],
        "podIPs": [{"ip": choice.choice(("10.1.1.1", "x", "::1"))}],
        "observedGeneration": choice.choice((1, 2, 9)),
    }
    status["conditions"] = [
        {"type": choice.choice(("Ready", "a.b/c", "bad type")), "status": choice.choice(("True", "X"))}
    ]
    kept = {key: status[key] for key in choice.sample(sorted(status), choice.randrange(1, 4))}
    return Request("PATCH", f"{path}/status", dump({"status": kept}), choice.choice((MERGE, STRATEGIC)), unordered=True)


def _resize(choice: random.Random, path: str) -> Request:
    amounts = {
        choice.choice(("cpu", "memory", "example.com/gpu")): choice.choice(("150m", "1Gi", "2", None)) for _ in range(2)
    }
    part = choice.choice(("requests", "limits"))
    container = {"name": choice.choice(("c",) * 5 + ("x",)), "resources": {part: amounts}}
    container |= choice.choice(({}, {}, {"image": "j"}))
    return Request("PATCH", f"{path}/resize", dump({"spec": {"containers": [container]}}), STRATEGIC, unordered=True)


def _debug(choice: random.Random, path: str) -> Request:
    made: dict[str, Any] = {
        "name": choice.choice(("d", "e", "c", "BAD")),
        "image": choice.choice(("i", "", "j")),
        "targetContainerName": choice.choice(("c", "x", "")),
    }
    made |= choice.choice(
        (
            {},
            {},
            {"ports": [{"containerPort": 1}]},
            {"resources": {"limits": {"cpu": "1"}}},
            {"stdin": True, "tty": True},
        )
    )
    return Request(
        "PATCH",
        f"{path}/ephemeralcontainers",
        dump({"spec": {"ephemeralContainers": [made]}}),
        STRATEGIC,
        unordered=True,
    )


def _evict(choice: random.Random, path: str) -> Request:
    options = choice.choice((None, {"gracePeriodSeconds": 0}, {"dryRun": ["All"]}, {"preconditions": {"uid": "x"}}))
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    return Request("POST", f"{path}/eviction", dump({**body, "deleteOptions": options} if options else body))


def _change(choice: random.Random, path: str) -> Request:
    patch: dict[str, Any] = choice.choice(
        (
            {"containers": [{"name": "c", "image": "other"}]},
            {"activeDeadlineSeconds": 9},
            {"schedulingGates": []},
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            {"nodeName": "n2"},
            {"terminationGracePeriodSeconds": 1},
            {"schedulingGates": [{"name": "x.y/z"}]},
            {"nodeSelector": {"a": "b"}},
            {"hostname": "h"},
        )
    )
    return Request("PATCH", path, dump({"spec": patch}), choice.choice((MERGE, STRATEGIC)), unordered=True)


def _leave(choice: random.Random, path: str) -> Request:
    query = choice.choice(
        ("", "?gracePeriodSeconds=5", "?gracePeriodSeconds=-1", "?dryRun=All", "?propagationPolicy=Foreground")
    )
    return Request("DELETE", path + query, accept=JSON)


_STEPS = (_bind, _report, _report, _resize, _debug, _evict, _change, _leave)
