from typing import Any

import pytest

from pilothouse.controllers.own_objects import create, existing, remove, update
from pilothouse.controlplane.bootstrap.flow_control import AUTO_UPDATE, ensure_flow_control, revise
from pilothouse.controlplane.bootstrap.flow_control_consumer import dangling
from pilothouse.controlplane.bootstrap.static_objects import static_objects
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

GROUP = "flowcontrol.apiserver.k8s.io"


def schema(name: str, precedence: int, generation: int, annotation: str | None) -> dict[str, Any]:
    annotations = {} if annotation is None else {"annotations": {AUTO_UPDATE: annotation}}
    return {
        "metadata": {"name": name, "generation": generation, **annotations},
        "spec": {"matchingPrecedence": precedence},
    }


@pytest.mark.parametrize(
    ("name", "precedence", "generation", "annotation", "expected"),
    [
        ("suggested", 1, 1, "true", None),
        ("suggested", 2, 1, "true", (1, "true")),
        ("suggested", 2, 7, "true", (1, "true")),
        ("suggested", 2, 7, "T", (1, "T")),
        ("suggested", 2, 1, "false", None),
        ("suggested", 2, 1, None, (1, "true")),
        ("suggested", 2, 2, None, (2, "false")),
        ("suggested", 2, 1, "perhaps", (1, "true")),
        ("suggested", 2, 2, "perhaps", (2, "false")),
        ("exempt", 2, 9, "false", (1, "true")),
        ("exempt", 1, 9, "false", (1, "true")),
        ("catch-all", 1, 9, "true", None),
    ],
)
def test_the_annotation_decides_who_owns_the_spec(
    name: str, precedence: int, generation: int, annotation: str | None, expected: tuple[int, str] | None
) -> None:
    wanted = schema(name, 1, 1, "true")
    revised = revise(schema(name, precedence, generation, annotation), wanted)
    if expected is None:
        assert revised is None
    else:
        assert revised is not None
        assert (revised["spec"]["matchingPrecedence"], revised["metadata"]["annotations"][AUTO_UPDATE]) == expected


def test_what_the_exempt_level_lends_is_its_owners_choice() -> None:
    wanted = next(o for o in static_objects("prioritylevelconfigurations") if o["metadata"]["name"] == "exempt")
    current = {
        "metadata": {**wanted["metadata"], "generation": 2},
        "spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 7, "lendablePercent": 50}},
    }
    assert revise(current, wanted) is None
    assert revise({**current, "spec": {"type": "Exempt"}}, wanted) is not None


def stores(storage: StorageFactory) -> tuple[Store, Store]:
    return storage.store(GROUP, "v1", "flowschemas"), storage.store(GROUP, "v1", "prioritylevelconfigurations")


async def test_missing_objects_come_back_and_a_second_round_writes_nothing(storage: StorageFactory) -> None:
    schemas, levels = stores(storage)
    await ensure_flow_control(schemas, levels)
    assert len(schemas.cache.entries()) == 11
    assert len(levels.cache.entries()) == 8
    revision = schemas.cache.revision
    await ensure_flow_control(schemas, levels)
    assert schemas.cache.revision == revision
    await remove(schemas, "", "probes")
    await ensure_flow_control(schemas, levels)
    assert await existing(schemas, "", "probes") is not None


async def test_changed_mandatory_objects_are_reset_and_others_left_when_annotated(storage: StorageFactory) -> None:
    schemas, levels = stores(storage)
    await ensure_flow_control(schemas, levels)

    def detach(obj: dict[str, Any]) -> dict[str, Any]:
        metadata = {**obj["metadata"], "annotations": {AUTO_UPDATE: "false"}}
        return {**obj, "metadata": metadata, "spec": {**obj["spec"], "matchingPrecedence": 4321}}

    await update(schemas, "", "probes", detach)
    await ensure_flow_control(schemas, levels)
    probes = await existing(schemas, "", "probes")
    assert probes is not None
    assert probes["spec"]["matchingPrecedence"] == 4321


async def test_objects_of_earlier_releases_are_removed(storage: StorageFactory) -> None:
    schemas, levels = stores(storage)
    spec = next(o for o in static_objects("flowschemas") if o["metadata"]["name"] == "probes")["spec"]
    for name, value in (("old", "true"), ("kept", "false")):
        await create(schemas, {"metadata": {"name": name, "annotations": {AUTO_UPDATE: value}}, "spec": spec})
    await create(schemas, {"metadata": {"name": "mine"}, "spec": spec})
    await ensure_flow_control(schemas, levels)
    names = {entry.name for entry in schemas.cache.entries()}
    assert "old" not in names
    assert {"kept", "mine"} <= names


@pytest.mark.parametrize(
    ("levels", "status", "reason", "ending"),
    [({"a"}, "False", "Found", '"a" and it exists'), ({"b"}, "True", "NotFound", '"a" but there is no such object')],
)
def test_a_schema_without_its_level_dangles(levels: set[str], status: str, reason: str, ending: str) -> None:
    verdict = dangling({"spec": {"priorityLevelConfiguration": {"name": "a"}}}, levels)
    assert (verdict["status"], verdict["reason"]) == (status, reason)
    assert verdict["message"] == f"This FlowSchema references the PriorityLevelConfiguration object named {ending}"
