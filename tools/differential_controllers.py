"""Conversations as controllers hold them: informers, elections, finalizers, statuses, conflicts, owners, events."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from differential_admission import APPLY, MERGE, dump
from differential_answers import JSON, Request
from differential_fields import set_some_field, status_of, structs_in
from differential_samples import SAMPLES, Sample, place, sound

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PROTOBUF = "application/vnd.kubernetes.protobuf,application/json"
_THING = Sample("things", {"apiVersion": "differ.example/v1", "kind": "Thing", "spec": {"a": 1}})
_TYPED = Sample("typeds", {"apiVersion": "typed.example/v1", "kind": "Typed", "spec": {"text": "a"}})
_STEADY = tuple(
    each
    for each in SAMPLES
    if not each.body["apiVersion"].startswith(("flowcontrol.", "admissionregistration.")) and each.resource != "events"
)
_NAMESPACED = tuple(each for each in _STEADY if each.namespaced)


class _On(NamedTuple):
    choice: random.Random
    namespace: str
    name: str
    where: str
    body: dict[str, Any]

    @property
    def path(self) -> str:
        return f"{self.where}/{self.name}"

    def copy(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(json.dumps(self.body))
        return body


_Step = Callable[[_On], list[Request]]


def reconciles(choice: random.Random, names: Any) -> list[Request]:
    """One object, and what a controller does about it: with the versions and uids it has seen, some of them old."""
    sample = choice.choice((*_STEADY, _THING, _TYPED, _THING, _TYPED))
    body = sound(sample, names.name)
    body["metadata"]["labels"] = {"own": names.name, **body["metadata"].get("labels", {})}
    on = _On(choice, names.namespace, names.name, place(sample, names.namespace), body)
    said = [Request("POST", on.where, dump(body), keeps="o"), Request("GET", on.path, keeps="first")]
    for _ in range(choice.randrange(3, 10)):
        said += choice.choice(_STEPS)(on)
    gone = Request("PATCH", on.path, b'{"metadata":{"finalizers":null}}', MERGE)
    return [*said, gone, Request("DELETE", f"{on.path}?gracePeriodSeconds=0")]


def _version(on: _On) -> str:
    return on.choice.choice(("$(o.rv)", "$(o.rv)", "$(o.rv)", "$(first.rv)", "", "1"))


def _look(on: _On) -> list[Request]:
    accept = on.choice.choice((JSON, JSON, _METADATA, _PROTOBUF))
    query = on.choice.choice(("", "", "?resourceVersion=0", "?resourceVersion=$(first.rv)"))
    return [Request("GET", on.path + query, keeps="o"), Request("GET", on.path + query, accept=accept)]


def _update(on: _On) -> list[Request]:
    body = on.copy()
    body["metadata"] |= {"resourceVersion": _version(on)}
    body["metadata"] |= on.choice.choice(({}, {}, {"uid": "$(o.uid)"}, {"finalizers": ["a.example/f"]}))
    body["metadata"]["annotations"] = {"a": on.choice.choice("xyz")}
    if on.choice.random() < 0.5 and "." not in body["apiVersion"].replace(".k8s.io", ""):
        set_some_field(on.choice, *on.choice.choice(structs_in(body)))
    return [Request("PUT", f"{on.path}?fieldManager=manager", dump(body), unordered=True)]


def _finalize(on: _On) -> list[Request]:
    finalizers = on.choice.choice((["a.example/f"], ["a.example/f", "b.example/g"], [], None, ["bad"], ["orphan"]))
    patch = {"metadata": {"finalizers": finalizers, "resourceVersion": _version(on)}}
    if not patch["metadata"]["resourceVersion"]:
        del patch["metadata"]["resourceVersion"]
    return [Request("PATCH", on.path, dump(patch), MERGE, accept=on.choice.choice((JSON, _METADATA)))]


def _delete(on: _On) -> list[Request]:
    preconditions = on.choice.choice(
        ({}, {"uid": "$(o.uid)"}, {"resourceVersion": "$(o.rv)"}, {"resourceVersion": "$(first.rv)"}, {"uid": "x"})
    )
    options = {"preconditions": preconditions} | on.choice.choice(
        ({}, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Background"}, {"gracePeriodSeconds": 0})
    )
    return [Request("DELETE", on.path, dump(options)), Request("GET", on.path, keeps="o")]


def _status(on: _On) -> list[Request]:
    conditions = [
        {
            "type": on.choice.choice(("Ready", "Synced")),
            "status": on.choice.choice(("True", "False", "Unknown")),
            "reason": "R",
            "message": "",
            "lastTransitionTime": "2020-01-01T00:00:00Z",
        }
    ]
    status: Any = {"conditions": conditions, "observedGeneration": 1}
    if on.body["apiVersion"].count("example") == 0:
        status = status_of(on.choice, on.body)
    body = {**on.copy(), "status": status}
    whole = {**body, "metadata": {**body["metadata"], "resourceVersion": _version(on)}}
    return [
        on.choice.choice(
            (
                Request("PATCH", f"{on.path}/status", dump({"status": status}), MERGE, unordered=True),
                Request("PUT", f"{on.path}/status", dump(whole), unordered=True),
                Request("PATCH", f"{on.path}/status?fieldManager=c&force=true", dump(body), APPLY, unordered=True),
            )
        ),
        Request("GET", on.path, keeps=on.choice.choice(("o", ""))),
    ]


def _own(on: _On) -> list[Request]:
    """A dependent of the object, with real and wrong references to it."""
    owner = {
        "apiVersion": on.body["apiVersion"],
        "kind": on.body["kind"],
        "name": on.name,
        "uid": on.choice.choice(("$(o.uid)", "$(o.uid)", "")),
        **on.choice.choice(({}, {"controller": True}, {"controller": True, "blockOwnerDeletion": True})),
    }
    owners = [owner] * on.choice.choice((1, 1, 1, 2))
    maps = f"/api/v1/namespaces/{on.namespace}/configmaps"
    body = {"metadata": {"name": f"{on.name}-d", "ownerReferences": owners}}
    patch = {"metadata": {"ownerReferences": [{**owner, "name": "other"}]}}
    kind = on.choice.choice((MERGE, "application/strategic-merge-patch+json"))
    return [
        Request("POST", maps, dump(body)),
        Request("PATCH", f"{maps}/{on.name}-d", dump(patch), kind),
        Request("DELETE", f"{maps}/{on.name}-d"),
    ]


def _generate(on: _On) -> list[Request]:
    body = on.copy()
    body["metadata"] = {"generateName": f"{on.name}-", "labels": {"generated": on.name}}
    many = f"{on.where}?labelSelector=generated%3D{on.name}"
    return [Request("POST", on.where, dump(body)), Request("DELETE", many), Request("GET", many)]


def _apply(on: _On) -> list[Request]:
    body = on.copy()
    body["metadata"] |= {"annotations": {on.choice.choice("ab"): on.choice.choice("xy")}}
    if on.choice.random() < 0.3:
        body["metadata"]["resourceVersion"] = _version(on)
    if on.choice.random() < 0.2:
        body["metadata"]["uid"] = on.choice.choice(("$(o.uid)", "x"))
    query = f"?fieldManager={on.choice.choice(('m', 'n'))}{on.choice.choice(('', '&force=true'))}"
    return [Request("PATCH", on.path + query, dump(body), APPLY, unordered=True)]


_STEPS: tuple[_Step, ...] = (_look, _look, _update, _update, _finalize, _delete, _status, _status, _own, _generate,
                             _apply)  # fmt: skip


def informers(choice: random.Random, names: Any) -> list[Request]:
    """Lists, in pages and of some version, changes, and watches from where the list was."""
    sample = choice.choice((*_NAMESPACED, _THING, _TYPED))
    where = place(sample, names.namespace)
    own = f"labelSelector=own%3D{names.name}"

    def made(number: int) -> dict[str, Any]:
        body = sound(sample, f"{names.name}-{number}")
        body["metadata"]["labels"] = {"own": names.name, "number": str(number)}
        return body

    accept = choice.choice((JSON, JSON, _METADATA_LIST, _PROTOBUF if sample not in (_THING, _TYPED) else JSON))
    said = [Request("POST", where, dump(made(number))) for number in range(choice.randrange(4))]
    said.append(Request("GET", f"{where}?{own}&limit=500", keeps="l"))
    queries = [choice.choice(_LISTS) for _ in range(choice.randrange(1, 4))]
    said += (Request("GET", f"{where}?{own}&{query}", accept=accept) for query in queries)
    if choice.random() < 0.6:
        said.append(Request("GET", f"{where}?{own}&limit={choice.choice((1, 2))}", keeps="p"))
        said += [Request("GET", f"{where}?{own}&limit=1&continue=$(p.continue)", keeps="p") for _ in range(2)]
    for _ in range(choice.randrange(1, 5)):
        number = choice.randrange(4)
        path = f"{where}/{names.name}-{number}"
        said.append(
            choice.choice(
                (
                    Request("POST", where, dump(made(number))),
                    Request("DELETE", f"{path}?gracePeriodSeconds=0"),
                    Request("PATCH", path, dump({"metadata": {"annotations": {"a": choice.choice("xy")}}}), MERGE),
                    Request(
                        "PATCH", path, dump({"metadata": {"labels": {"own": choice.choice((names.name, "no"))}}}), MERGE
                    ),
                )
            )
        )
    if choice.random() < 0.5:
        said.append(Request("GET", f"{where}?{own}&continue=$(p.continue)&limit=5"))
        said.append(Request("GET", f"{where}?{own}&resourceVersion=$(l.rv)&resourceVersionMatch=Exact"))
    if choice.random() < 0.3:
        kind = accept.replace("List", "") if accept != _PROTOBUF else JSON
        said.append(Request("GET", f"{where}?{own}&watch=1&timeoutSeconds=1&{choice.choice(_WATCHES)}", accept=kind))
    return [*said, *(Request("DELETE", f"{where}/{names.name}-{n}?gracePeriodSeconds=0") for n in range(4))]


_LISTS = (
    "resourceVersion=0", "resourceVersion=0&limit=500", "resourceVersion=$(l.rv)", "limit=1", "limit=2",
    "resourceVersion=$(l.rv)&resourceVersionMatch=NotOlderThan", "resourceVersion=$(l.rv)&resourceVersionMatch=Exact",
    "resourceVersion=$(l.rv)&resourceVersionMatch=Exact&limit=1", "resourceVersion=$(l.rv)&limit=1",
    "fieldSelector=metadata.name!%3Dx", "limit=1&resourceVersionMatch=NotOlderThan",
)  # fmt: skip
_WATCHES = (
    "resourceVersion=$(l.rv)&allowWatchBookmarks=true", "resourceVersion=$(l.rv)", "resourceVersion=$(l.rv)",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=$(l.rv)",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "resourceVersion=0",
    "resourceVersion=$(l.rv)&fieldSelector=metadata.namespace!%3Dx", "sendInitialEvents=false&resourceVersion=$(l.rv)",
)  # fmt: skip


def elections(choice: random.Random, names: Any) -> list[Request]:
    """Candidates who take, renew and lose a lease, and say so in events."""
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{names.namespace}/leases"
    events = f"/apis/events.k8s.io/v1/namespaces/{names.namespace}/events"
    path = f"{leases}/{names.name}"
    said = [Request("GET", path)]
    for number in range(choice.randrange(3, 8)):
        spec: dict[str, Any] = {
            "holderIdentity": choice.choice(("a_1", "b_2", "")),
            "leaseDurationSeconds": choice.choice((15, 0, -1, 60)),
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": f"2026-01-01T00:00:0{number}.123456Z",
            "leaseTransitions": choice.choice((0, 1, -1)),
        }
        if choice.random() < 0.2:
            spec |= {"strategy": choice.choice(("OldestEmulationVersion", "x")), "preferredHolder": "a_1"}
        version = choice.choice(("$(l.rv)", "$(l.rv)", "1", ""))
        body = {"metadata": {"name": names.name, "resourceVersion": version}, "spec": spec}
        fresh = {"metadata": {"name": names.name}, "spec": spec}
        said += [
            choice.choice(
                (
                    Request("POST", leases, dump(fresh), unordered=True),
                    Request("PUT", path, dump(body), unordered=True),
                    Request("PUT", path, dump(body), unordered=True),
                    Request("PATCH", path, dump({"spec": spec}), MERGE, unordered=True),
                )
            ),
            Request("GET", path, keeps=choice.choice(("l", "l", ""))),
        ]
    series = {"count": choice.choice((2, 1)), "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    event = {
        "metadata": {"name": f"{names.name}.1"},
        "eventTime": choice.choice(("2026-01-01T00:00:00.000000Z", None)),
        "reportingController": choice.choice(("a.example/c", "", "bad name!")),
        "reportingInstance": choice.choice(("i", "")),
        "action": choice.choice(("Elect", "")),
        "reason": choice.choice(("LeaderElection", "x" * 129)),
        "type": choice.choice(("Normal", "Warning", "Odd")),
        "note": choice.choice(("became leader", "n" * 1025)),
        "regarding": {"kind": "Lease", "namespace": choice.choice((names.namespace, "", "other")), "name": names.name},
        **choice.choice(({}, {}, {"series": series})),
    }
    core = f"/api/v1/namespaces/{names.namespace}/events/{names.name}.1"
    said += [
        Request("POST", events, dump(event), unordered=True),
        Request("PATCH", f"{events}/{names.name}.1", dump({"series": series}), MERGE, unordered=True),
        Request("PATCH", core, dump({"count": 3, "message": "m"}), MERGE, unordered=True),
        Request("GET", core, accept=choice.choice((JSON, _PROTOBUF, "application/json;as=Table;g=meta.k8s.io;v=v1"))),
        Request("DELETE", core),
    ]
    return [*said, Request("DELETE", path)]
