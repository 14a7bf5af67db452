"""The registry makes documents once, in the background, and anew when their source changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Iterable

import orjson
import pytest

from pilothouse.apis.resources import table
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.openapi.operations import MediaTypes, Operation, ok
from pilothouse.openapi.registry import JSON, PROTOBUF, OpenApi
from pilothouse.openapi.schemas import Dialect, Schema, definition
from pilothouse.openapi.sources import BuiltInVersion

KITES = GroupVersion("toys.example.com", "v1")
MODEL = "com.example.toys.v1.Kite"


class Kites:
    """A custom resource's document that counts how often it is made."""

    models: Collection[str] = (MODEL,)
    custom = True

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.made = 0

    def operations(self) -> Iterable[Operation]:
        self.made += 1
        path = f"/apis/{KITES}/kites/{{name}}"
        return [Operation(path, "GET", "readKite", "read the specified Kite", [], ok(MODEL), ("application/json",))]

    def definition(self, model: str, dialect: Dialect) -> Schema | None:
        if model != MODEL:
            return definition(model, dialect)
        metadata = {"$ref": f"{dialect.prefix}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
        return {"type": "object", "properties": {"metadata": metadata}}


@pytest.fixture
def openapi() -> OpenApi:
    made = OpenApi()
    gv = GroupVersion("scheduling.k8s.io", "v1")
    made.set_group_version(gv, BuiltInVersion(table()[gv], MediaTypes()))
    return made


def addresses(openapi: OpenApi) -> dict[str, str]:
    index = orjson.loads(openapi.index().body)
    return {name: entry["serverRelativeURL"] for name, entry in index["paths"].items()}


async def test_documents_that_are_asked_for_together_are_made_one_after_the_other() -> None:
    """Threads that all write JSON would make others wait for all of them."""
    openapi, begun = OpenApi(), threading.Event()
    started: list[bool] = []
    overlaps: list[bool] = []

    class Slow(Kites):
        def operations(self) -> Iterable[Operation]:
            started.append(True)
            if len(started) > 1:
                begun.set()
            overlaps.append(begun.wait(0.2))
            return super().operations()

    versions = [GroupVersion("toys.example.com", f"v{number}") for number in (1, 2)]
    for each in versions:
        openapi.set_group_version(each, Slow())
    await asyncio.gather(*(openapi.document(f"apis/{each}", JSON) for each in versions))
    assert overlaps[0] is False


async def test_index_makes_no_document(openapi: OpenApi) -> None:
    kites = Kites()
    openapi.set_group_version(KITES, kites)
    found = addresses(openapi)
    assert list(found) == ["apis/scheduling.k8s.io/v1", "apis/toys.example.com/v1"]
    document = await openapi.document("apis/toys.example.com/v1", JSON)
    assert document is not None
    assert found["apis/toys.example.com/v1"] == f"/openapi/v3/apis/toys.example.com/v1?hash={document.etag}"
    assert kites.made == 1


async def test_concurrent_requests_share_one_making(openapi: OpenApi) -> None:
    kites = Kites()
    openapi.set_group_version(KITES, kites)
    found = await asyncio.gather(*(openapi.document("apis/toys.example.com/v1", JSON) for _ in range(5)))
    assert kites.made == 1
    assert len({id(each) for each in found}) == 1


async def test_a_cancelled_request_leaves_the_document_to_others(openapi: OpenApi) -> None:
    kites = Kites()
    openapi.set_group_version(KITES, kites)
    gone = asyncio.create_task(openapi.document("apis/toys.example.com/v1", JSON))
    stays = asyncio.create_task(openapi.document("apis/toys.example.com/v1", JSON))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays is not None
    assert kites.made == 1


async def test_changes_and_removal(openapi: OpenApi) -> None:
    openapi.set_group_version(KITES, Kites("1"))
    before, swagger = addresses(openapi), await openapi.swagger(JSON)
    openapi.set_group_version(KITES, Kites("2"))
    after = addresses(openapi)
    assert before["apis/toys.example.com/v1"] != after["apis/toys.example.com/v1"]
    assert before["apis/scheduling.k8s.io/v1"] == after["apis/scheduling.k8s.io/v1"]
    assert (await openapi.swagger(JSON)).etag != swagger.etag
    openapi.remove_group_version(KITES)
    assert await openapi.document("apis/toys.example.com/v1", JSON) is None
    assert list(addresses(openapi)) == ["apis/scheduling.k8s.io/v1"]


async def test_swagger_has_everything(openapi: OpenApi) -> None:
    openapi.set_group_version(KITES, Kites())
    document = orjson.loads((await openapi.swagger(JSON)).body)
    assert f"/apis/{KITES}/kites/{{name}}" in document["paths"]
    assert "/apis/scheduling.k8s.io/v1/priorityclasses" in document["paths"]
    assert document["definitions"][MODEL]["type"] == "object"
    assert "io.k8s.api.scheduling.v1.PriorityClass" in document["definitions"]


async def test_both_forms_have_one_hash(openapi: OpenApi) -> None:
    plain = await openapi.document("apis/scheduling.k8s.io/v1", JSON)
    protobuf = await openapi.document("apis/scheduling.k8s.io/v1", PROTOBUF)
    assert plain is not None
    assert protobuf is not None
    assert plain.etag == protobuf.etag
    assert protobuf.body.startswith(b"\n\x053.0.0")
