"""Custom resources that a webhook converts: many, long, growing, for many clients at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPResponse, HTTPSConnection
from typing import Any

import orjson
import pytest
from tests.robustness.attacks.conftest import Answer, Victim
from tests.robustness.attacks.outside_party import OutsideParty

from pilothouse.credentials.pki import Pki

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MERGE = "application/merge-patch+json"
COUNT = 1_000
CLIENTS = 6
WATCHES = 20
CHANGES = 5


@pytest.fixture(scope="module")
def party(victim: Victim, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideParty]:
    made = OutsideParty(Pki(victim.server.data / "pki"), tmp_path_factory.mktemp("party"), convert_by(lambda obj: obj))
    yield made
    made.close()


def convert_by(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Any], bytes]:
    """A webhook that makes of each object what ``change`` does."""

    def answer(sent: Any) -> bytes:
        request = sent["request"]
        wanted = request["desiredAPIVersion"]
        converted = [change({**obj, "apiVersion": wanted}) for obj in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        return orjson.dumps({"apiVersion": sent["apiVersion"], "kind": sent["kind"], "response": response})

    return answer


@pytest.fixture
def things(victim: Victim, party: OutsideParty, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """A definition of the test's own, stored in v1; paths of its objects in a version."""
    group = request.node.name.replace("_", "-").partition("[")[0] + ".example.com"
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": OPEN}}
        for name in ("v1", "v2")
    ]
    webhook = {"clientConfig": party.config, "conversionReviewVersions": ["v1"]}
    spec = {
        "group": group,
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": versions,
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    name = {"name": f"things.{group}"}
    victim.establish(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": name, "spec": spec}
    )
    party.answer = convert_by(lambda obj: obj)
    return lambda version: f"/apis/{group}/{version}/namespaces/default/things"


def create(victim: Victim, path: str, count: int, content: Any) -> None:
    connection = HTTPSConnection("127.0.0.1", victim.port, timeout=120, context=victim.contexts[False])
    version = path.split("/namespaces")[0].removeprefix("/apis/")
    for number in range(count):
        body = {"apiVersion": version, "kind": "Thing", "metadata": {"name": f"t{number}"}, "spec": content}
        connection.request("POST", path, orjson.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = answer.read()
        assert answer.status == 201, told
    connection.close()


def all_at_once(ask: Callable[[], Answer], count: int) -> list[Answer]:
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_lists_of_many(victim: Victim, party: OutsideParty, things: Callable[[str], str]) -> None:
    """Each is converted once, whoever else wants it."""
    create(victim, things("v1"), COUNT, {f"k{number}": "v" * 20 for number in range(50)})
    before = party.calls
    with victim.attacked(f"lists of {COUNT} converted objects for {CLIENTS}"):
        answers = all_at_once(lambda: victim.call("GET", things("v2")), CLIENTS)
    assert [len(answer.json["items"]) for answer in answers] == [COUNT] * CLIENTS
    assert party.calls - before <= 1 + COUNT // 400


def test_lists_of_many_that_nobody_has_to_convert(victim: Victim, things: Callable[[str], str]) -> None:
    """The same where a conversion changes nothing but the version."""
    path = things("v1")
    group = path.split("/")[2]
    definition = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}"
    create(victim, path, COUNT, {f"k{number}": "v" * 20 for number in range(50)})
    unconverted = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    assert victim.call("PATCH", definition, unconverted, MERGE).status == 200
    with victim.attacked(f"lists of {COUNT} objects in another version for {CLIENTS}"):
        answers = all_at_once(lambda: victim.call("GET", things("v2")), CLIENTS)
    assert [len(answer.json["items"]) for answer in answers] == [COUNT] * CLIENTS


def test_an_object_that_grows(victim: Victim, party: OutsideParty, things: Callable[[str], str]) -> None:
    """A few bytes that become half a megabyte, read and written."""
    create(victim, things("v1"), 1, {"a": "b"})
    party.answer = convert_by(lambda obj: {**obj, "spec": {f"k{number}": "v" for number in range(40_000)}})
    with victim.attacked("a conversion to 40,000 fields"):
        found = victim.call("GET", f"{things('v2')}/t0")
        changed = victim.call("PATCH", f"{things('v2')}/t0", {"spec": {"c": "d"}}, MERGE)
        gone = victim.call("DELETE", f"{things('v2')}/t0")
    assert [each.status for each in (found, changed, gone)] == [200, 200, 200]
    assert len(found.json["spec"]) == 40_000


def test_watches(victim: Victim, party: OutsideParty, things: Callable[[str], str]) -> None:
    """What changes is converted once for all who watch."""
    create(victim, things("v1"), 1, {"a": "b"})
    with ExitStack() as opened:
        watching = [opened.enter_context(watch(victim, things("v2"))) for _ in range(WATCHES)]
        for each in watching:
            assert orjson.loads(each.readline())["type"] == "ADDED"
        before = party.calls
        with victim.attacked(f"{WATCHES} watches of converted objects"):
            for number in range(CHANGES):
                change = {"spec": {"number": number}}
                assert victim.call("PATCH", f"{things('v1')}/t0", change, MERGE).status == 200
            for each in watching:
                seen = [orjson.loads(each.readline()) for _ in range(CHANGES)]
                assert [event["object"]["spec"]["number"] for event in seen] == list(range(CHANGES))
        assert party.calls - before <= CHANGES


@contextmanager
def watch(victim: Victim, path: str) -> Iterator[HTTPResponse]:
    made = HTTPSConnection("127.0.0.1", victim.port, timeout=120, context=victim.contexts[False])
    with closing(made) as connection:
        connection.request("GET", f"{path}?watch=true&resourceVersion=0")
        with connection.getresponse() as answer:
            yield answer
