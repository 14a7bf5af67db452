"""What a conversion webhook may answer, and how everything else is refused."""

from __future__ import annotations

import base64

import orjson
import pytest

from pilothouse.apiextensions.serving.conversion import ConversionFailed
from pilothouse.apiextensions.serving.webhook import ConversionWebhooks, WebhookConverter
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.net.outgoing import Answer, OutgoingError

V2 = GroupVersion("example.com", "v2")
METADATA = {"name": "one", "namespace": "n", "uid": "u", "labels": {"a": "b"}, "resourceVersion": "5"}
OBJ = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": METADATA}
START = "conversion webhook for example.com/v1, Kind=Box "


class Client:
    """Answers every request the same way, made from what was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def post(self, url, body, **options):
        self.asked.append((url, orjson.loads(body), options))
        made = self.answer(orjson.loads(body))
        if isinstance(made, Exception):
            raise made
        return made if isinstance(made, Answer) else Answer(200, {}, orjson.dumps(made))


def converter(answer, *, versions=("v1",), config=None):
    webhook = {"conversionReviewVersions": list(versions), "clientConfig": config or {"url": "https://host/convert"}}
    client = Client(answer)
    return WebhookConverter(webhook, client), client


def reviewed(change, **more):
    """An answer whose objects are made by ``change``."""

    def answer(review):
        request = review["request"]
        objects = [change({**obj, "apiVersion": request["desiredAPIVersion"]}) for obj in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects, **more}
        return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}

    return answer


async def test_only_labels_and_annotations_of_metadata_are_taken():
    own, client = converter(
        reviewed(lambda obj: {**obj, "metadata": {**METADATA, "labels": {"c": "d"}, "resourceVersion": "9"}})
    )
    ((converted,), _) = await own.convert([OBJ], V2, 0)
    assert converted["metadata"] == {**METADATA, "labels": {"c": "d"}}
    url, review, _ = client.asked[0]
    assert url == "https://host/convert?timeout=30s"
    assert review["request"]["desiredAPIVersion"] == "example.com/v2"
    assert review["apiVersion"] == "apiextensions.k8s.io/v1"


async def test_services_are_reached_by_their_name():
    config = {
        "service": {"name": "s", "namespace": "n", "path": "p", "port": 8443},
        "caBundle": base64.b64encode(b"PEM").decode(),
    }
    own, client = converter(reviewed(lambda obj: obj), config=config)
    await own.convert([OBJ], V2, 0)
    url, _, options = client.asked[0]
    assert url == "https://s.n.svc:8443/p?timeout=30s"
    assert (options["tls"].server_name, options["tls"].authorities) == ("s.n.svc", b"PEM")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda review: OutgoingError("no route"), START + "failed: no route"),
        (lambda review: Answer(404, {}, b""), START + "failed: the server could not find the requested resource"),
        (lambda review: [], START + "failed: no response provided"),
        (
            lambda review: {"kind": "Pod", "apiVersion": "v1"},
            START
            + "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /v1, Kind=Pod",
        ),
        (
            lambda review: {"kind": "ConversionReview", "apiVersion": review["apiVersion"]},
            START + "failed: no response provided",
        ),
        (reviewed(lambda obj: obj, uid="other"), START + 'failed: expected response.uid="'),
        (
            reviewed(lambda obj: obj, result={"status": "Failure"}),
            START + "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (reviewed(lambda obj: obj, result={"status": "Failure", "message": "why"}), START + "failed: why"),
        (reviewed(lambda obj: obj, convertedObjects=[]), START + "returned 0 objects, expected 1"),
        (
            reviewed(lambda obj: OBJ),
            START + "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, ",
        ),
        (
            reviewed(lambda obj: {**obj, "kind": "Crate"}),
            START + "returned invalid object at index 0: invalid kind (expected Box, received Crate)",
        ),
        (
            reviewed(lambda obj: {**obj, "metadata": {**METADATA, "name": "two"}}),
            START + "returned invalid object: must have the same name: one != two",
        ),
        (
            reviewed(lambda obj: {k: v for k, v in obj.items() if k != "metadata"}),
            START + "returned invalid object: must have the same name: one != ",
        ),
        (
            reviewed(lambda obj: {**obj, "metadata": {**METADATA, "labels": {"a": 1}}}),
            START + "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            reviewed(lambda obj: {**obj, "metadata": {**METADATA, "labels": {"a b": "c"}}}),
            START + "returned invalid metadata: ",
        ),
    ],
)
async def test_refused_answers(answer, message):
    own, _ = converter(answer)
    with pytest.raises(ConversionFailed) as caught:
        await own.convert([OBJ], V2, 0)
    assert caught.value.message.startswith(message)


async def test_older_reviews_need_no_uid():
    own, _ = converter(reviewed(lambda obj: obj, uid=""), versions=("v9", "v1beta1"))
    assert len((await own.convert([OBJ], V2, 0)).objects) == 1


async def test_reviews_nobody_knows():
    own, _ = converter(reviewed(lambda obj: obj), versions=("v9",))
    with pytest.raises(ConversionFailed, match="no supported conversion review versions"):
        await own.convert([OBJ], V2, 0)


async def test_only_definitions_that_ask_for_one_get_a_converter():
    webhooks = ConversionWebhooks()
    assert webhooks.converter_for({"spec": {"conversion": {"strategy": "None"}}}) is None
    asked = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://host"}}}
    assert webhooks.converter_for({"metadata": {"name": "x"}, "spec": {"conversion": asked}}) is not None
    await webhooks.stop()
