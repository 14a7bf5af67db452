"""Conversations about what lists show of objects: the cells of random ones, and which of them selectors find."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote

from differential_admission import MERGE, STRATEGIC, dump
from differential_answers import JSON, Request
from differential_fields import set_some_field, status_of, structs_in
from differential_samples import SAMPLES, place, sound

_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_SETTLED = tuple(each for each in SAMPLES if not each.body["apiVersion"].startswith("flowcontrol."))


def columns(choice: random.Random, names: Any) -> list[Request]:
    """Objects of each kind with random fields and statuses, as tables show them."""
    sample = choice.choice(_SETTLED)
    where, good = place(sample, names.namespace), sound(sample, names.name)
    path = f"{where}/{names.name}"
    said = [Request("POST", where, dump(good))]
    for _ in range(3):
        odd: dict[str, Any] = json.loads(json.dumps(good))
        for _ in range(choice.choice((1, 1, 2))):
            set_some_field(choice, *choice.choice(structs_in(odd)))
        status = status_of(choice, good)
        one = {key: status[key] for key in list(status)[: choice.randrange(1, 4)]} if isinstance(status, dict) else {}
        some = choice.choice((status, one, one))
        included = choice.choice(("", "?includeObject=Object", "?includeObject=None"))
        said += [
            Request("PATCH", path, dump({**odd, "metadata": {}}), choice.choice((MERGE, STRATEGIC)), unordered=True),
            Request("PATCH", f"{path}/status", dump({"status": some}), choice.choice((MERGE, STRATEGIC)),
                    unordered=True),
            Request("GET", path + included, accept=_TABLE),
        ]  # fmt: skip
    return [*said, Request("DELETE", f"{path}?gracePeriodSeconds=0")]


_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase",
             "status.podIP", "status.podIPs", "status.nominatedNodeName", "spec.hostNetwork"),
    "events": ("involvedObject.kind", "involvedObject.name", "reason", "type", "source", "reportingComponent"),
    "secrets": ("type",),
    "services": ("spec.type", "spec.clusterIP"),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase", "name"),
    "jobs": ("status.successful",),
    "replicasets": ("status.replicas",),
    "replicationcontrollers": ("status.replicas",),
    "certificatesigningrequests": ("spec.signerName",),
    "resourceslices": ("spec.nodeName", "spec.driver"),
}  # fmt: skip
_VALUES = ("", "Opaque", "Always", "Never", "Pending", "a", "n", "None", "true", "false", "0", "1", "ClusterIP", "Pod",
           "Active", "d.example", "default-scheduler", "p", "r", "Normal", "default", "a.b/c")  # fmt: skip


def _field_selector(choice: random.Random, resource: str, name: str) -> str:
    parts = []
    for _ in range(choice.choice((1, 1, 2))):
        field = choice.choice((*_FIELDS.get(resource, ()) * 2, "metadata.name", "metadata.namespace", "spec.nobody"))
        value = choice.choice(_VALUES) if not field.startswith("metadata") else choice.choice((f"{name}-0", name, ""))
        parts.append(field + choice.choice(("=", "==", "!=")) + value)
    return quote(",".join(parts), safe="")


def _label_selector(choice: random.Random) -> str:
    some = ("a=b", "a!=b", "a", "!a", "a in (b,c)", "a notin (b)", "n>1", "n<2", "n>x", "a=", "a in (b,)", "c/d=e",
            "a in ( b , c )", "!c/d", "a=b,a=c", "n>0,n<3", "a==b", "A", "a in (b),a notin (b)")  # fmt: skip
    return ",".join(choice.sample(some, choice.choice((1, 1, 2))))


def selections(choice: random.Random, names: Any) -> list[Request]:
    """A few labelled objects, and lists that select some of them, in pages or at once."""
    sample = choice.choice(_SETTLED)
    where = place(sample, names.namespace)
    said = []
    for number in range(3):
        body = sound(sample, f"{names.name}-{number}")
        labels = {"own": names.name, "n": str(number), "a": choice.choice(("b", "c", ""))}
        body["metadata"]["labels"] = labels | choice.choice(({}, {"c/d": "e"}))
        said.append(Request("POST", where, dump(body)))
    for _ in range(6):
        query = [f"labelSelector={quote(f'own={names.name},{_label_selector(choice)}', safe='')}"]
        if choice.random() < 0.6:
            query = [f"labelSelector=own%3D{names.name}"]
            query.append(f"fieldSelector={_field_selector(choice, sample.resource, names.name)}")
        query += choice.choice(((), (), ("limit=1",), ("limit=2",), ("resourceVersion=0",)))
        query += choice.choice(((), (), (), ("resourceVersionMatch=NotOlderThan",), ("timeoutSeconds=5",)))
        accept = choice.choice((JSON, _TABLE))
        if choice.random() < 0.08:
            said.append(Request("DELETE", f"{where}?{'&'.join(query)}&dryRun=All"))
        said.append(Request("GET", f"{where}?{'&'.join(query)}", accept=accept, keeps="p"))
        if any(each.startswith("limit") for each in query):
            said.append(Request("GET", f"{where}?{'&'.join(query)}&continue=$(p.continue)", accept=accept))
    return [*said, Request("DELETE", f"{where}?labelSelector=own%3D{names.name}&gracePeriodSeconds=0")]


_QUOTED = ("a<b", "a>b", "a&b", "é", "A<", "\u2028", '"', "a\tb", "\x7f")


def _quoting(choice: random.Random, value: Any) -> Any:
    """A value with odd characters in its texts: those of named types are quoted otherwise than plain ones."""
    if isinstance(value, dict):
        return {key: _quoting(choice, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_quoting(choice, item) for item in value]
    return choice.choice(_QUOTED) if isinstance(value, str) and choice.random() < 0.6 else value


def quotes(choice: random.Random, names: Any) -> list[Request]:
    """Objects of each kind with texts in them that are quoted in several ways."""
    sample = choice.choice(_SETTLED)
    where, good = place(sample, names.namespace), sound(sample, names.name)
    path = f"{where}/{names.name}"
    said = [Request("POST", where, dump(good))]
    for _ in range(4):
        odd: dict[str, Any] = json.loads(json.dumps(good))
        target, of = choice.choice(structs_in(odd))
        before = dict(target)
        set_some_field(choice, target, of)
        changed = [key for key in target if target[key] != before.get(key)] or sorted(target)
        for key in changed[:1]:
            if key not in ("kind", "apiVersion", "metadata"):
                target[key] = _quoting(choice, target[key])
        said += [
            Request("PUT", path, dump(odd), unordered=True),
            Request("PATCH", path, dump({**odd, "metadata": {}}), choice.choice((MERGE, STRATEGIC)), unordered=True),
            Request("POST", f"{where}?dryRun=All", dump({**odd, "metadata": {"generateName": f"{names.name}-"}}),
                    unordered=True),
        ]  # fmt: skip
        if choice.random() < 0.5:
            status = _quoting(choice, status_of(choice, good))
            said.append(Request("PATCH", f"{path}/status", dump({"status": status}), MERGE, unordered=True))
    return [*said, Request("DELETE", f"{path}?gracePeriodSeconds=0")]
