"""Answers of webhooks that are valid and cost: patches that are many, long or grow, words nobody can read.

Whoever registers a webhook is trusted; others must not wait for what it says.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from tests.robustness.attacks.conftest import Victim
from tests.robustness.attacks.outside_party import OutsideParty

from pilothouse.credentials.pki import Pki

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
NAME = "outside.example.com"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


@pytest.fixture(scope="module")
def party(victim: Victim, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideParty]:
    made = OutsideParty(Pki(victim.server.data / "pki"), tmp_path_factory.mktemp("party"), lambda sent: b"")
    yield made
    made.close()


@contextmanager
def registered(victim: Victim, party: OutsideParty, sort: str, response: dict[str, Any]) -> Iterator[None]:
    """A webhook that says this to all config maps, and is asked."""
    rest = orjson.dumps(response)[1:]

    def answer(sent: Any) -> bytes:
        head = {"apiVersion": sent["apiVersion"], "kind": sent["kind"], "response": {"uid": sent["request"]["uid"]}}
        return orjson.dumps(head)[:-2] + b"," + rest + b"}"

    party.answer = answer
    hook = {
        "name": NAME,
        "clientConfig": party.config,
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "objectSelector": {"matchLabels": {"asked": "yes"}},
        "timeoutSeconds": 20,
    }
    kind = f"{sort}WebhookConfiguration"
    path = f"{ADMISSION}/{kind.lower()}s"
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}}
    assert victim.call("POST", path, {**body, "webhooks": [hook]}).status == 201
    try:
        deadline, calls = time.monotonic() + 60, party.calls
        while party.calls == calls:
            assert time.monotonic() < deadline
            victim.call("POST", f"{MAPS}?dryRun=All", a_map())
        yield
    finally:
        assert victim.call("DELETE", f"{path}/{NAME}").status == 200


def a_map(**fields: Any) -> dict[str, Any]:
    metadata = {"generateName": "m", "labels": {"asked": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def patch_of(operations: list[dict[str, Any]]) -> dict[str, Any]:
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def adding(key: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": key, "value": value}


LONGEST = 8 << 20
ANSWERS: dict[str, tuple[int, Callable[[], dict[str, Any]]]] = {
    "60,000 operations": (
        201,
        lambda: patch_of([adding("/data", {}), *(adding(f"/data/k{n}", "v") for n in range(60_000))]),
    ),
    "9,000 copies among 20,000 keys": (
        201,
        lambda: patch_of(
            [adding("/data", {f"k{n}": "v" for n in range(20_000)})]
            + [{"op": "copy", "from": "/data/k1", "path": f"/data/c{n}"} for n in range(9_000)]
        ),
    ),
    "warnings that are no list": (500, lambda: {"allowed": True, "warnings": 5}),
    "100,000 finalizers": (
        201,
        lambda: patch_of([adding("/metadata/finalizers", [f"e.com/f{n}" for n in range(100_000)])]),
    ),
    "a longer object than can be stored": (
        500,
        lambda: patch_of([adding("/data", {f"k{n}": "v" for n in range(200_000)})]),
    ),
    "a longer answer than is read": (500, lambda: patch_of([adding("/data", {"a": "x" * LONGEST})])),
    "30,000 warnings": (201, lambda: {"allowed": True, "warnings": [f"{n:0>200}" for n in range(30_000)]}),
    "60,000 annotations": (201, lambda: {"allowed": True, "auditAnnotations": {f"k{n}": "v" for n in range(60_000)}}),
    "60,000 bad annotations": (
        201,
        lambda: {"allowed": True, "auditAnnotations": {f"k/{n}": "v" for n in range(60_000)}},
    ),
    "a refusal of 60,000 causes": (
        400,
        lambda: {
            "allowed": False,
            "status": {"message": "no", "details": {"causes": [{"reason": "r", "message": "m"}] * 60_000}},
        },
    ),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_mutating(victim: Victim, party: OutsideParty, what: str) -> None:
    status, make = ANSWERS[what]
    with registered(victim, party, "Mutating", make()), victim.attacked(f"a webhook's answer: {what}"):
        answer = victim.call("POST", MAPS, a_map())
    assert answer.status == status, answer.body[:500]
    if "no list" in what:
        why = "json: cannot unmarshal number into Go struct field AdmissionResponse.response.warnings of type []string"
        assert answer.json["message"].endswith(f'failed calling webhook "{NAME}": failed to call webhook: {why}')


def test_validating_a_long_object(victim: Victim, party: OutsideParty) -> None:
    """It is written down for the webhook whenever it is created, changed and deleted."""
    long_map = a_map(data={f"k{number}": "v" for number in range(60_000)})
    what = "a webhook that is asked about an object of a megabyte"
    with registered(victim, party, "Validating", {"allowed": True}), victim.attacked(what):
        made = victim.call("POST", MAPS, long_map)
        path = f"{MAPS}/{made.json['metadata']['name']}"
        changed = victim.call("PATCH", path, {"data": {"k": "v"}}, "application/merge-patch+json")
        gone = victim.call("DELETE", path)
    assert [each.status for each in (made, changed, gone)] == [201, 200, 200]
