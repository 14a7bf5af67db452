"""Flow schemas and priority levels that every cluster has.

*Mandatory* ones (``exempt`` and ``catch-all``) always have the specs they must have, but for what the exempt level
lends. *Suggested* ones follow releases only while their annotation says so, or while they have none and never changed:

    annotation           spec                              annotation afterwards
    true                 brought in line                   true
    false                left alone                        false
    missing, malformed   in line if generation is 1        whether that was so

Objects that carry ``true`` but are in no list any more are removed. All this is repeated every minute.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pilothouse.controllers.own_objects import create, existing, remove, update
from pilothouse.controlplane.bootstrap.static_objects import static_objects
from pilothouse.machinery.objects import Object
from pilothouse.registry.store.store import Store

AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
PRODUCER: Final = "api-priority-and-fairness-config-producer-v1"
MANDATORY: Final = frozenset({"exempt", "catch-all"})
INTERVAL_SECONDS: Final = 60.0
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


async def ensure_flow_control(flow_schemas: Store, priority_levels: Store) -> None:
    """Bring all in line. Levels are written before the schemas that refer to them, in the same batch."""
    plan = [
        (store, wanted) for store in (priority_levels, flow_schemas) for wanted in static_objects(store.resource.name)
    ]
    await asyncio.gather(*(_ensure(store, wanted) for store, wanted in plan))
    for store in (flow_schemas, priority_levels):
        await _remove_unwanted(store, {wanted["metadata"]["name"] for known, wanted in plan if known is store})


async def _ensure(store: Store, wanted: Object) -> None:
    name = wanted["metadata"]["name"]
    stored = await existing(store, "", name)
    if stored is None:
        await create(store, wanted, PRODUCER)
    elif revise(stored, wanted) is not None:
        await update(store, "", name, lambda current: revise(current, wanted), PRODUCER)


async def _remove_unwanted(store: Store, wanted: set[str]) -> None:
    for entry in store.cache.entries():
        if entry.name not in wanted and _auto_update(store.decode(entry)) is True:
            await remove(store, "", entry.name)


def revise(current: Object, wanted: Object) -> Object | None:
    """What an existing object is to become; None if it is right as it is."""
    annotated = _auto_update(current)
    in_line = wanted["metadata"]["name"] in MANDATORY or (
        current["metadata"].get("generation") == 1 if annotated is None else annotated
    )
    respecify = in_line and not _same_spec(wanted, current)
    if annotated is in_line and not respecify:
        return None
    revised = {**current, "metadata": dict(current["metadata"])}
    if respecify:
        revised["spec"] = wanted["spec"]
    if annotated is not in_line:
        annotations = current["metadata"].get("annotations") or {}
        revised["metadata"]["annotations"] = {**annotations, AUTO_UPDATE: "true" if in_line else "false"}
    return revised


def _auto_update(obj: Object) -> bool | None:
    """What the annotation says; None where it says nothing that can be read."""
    value = (obj["metadata"].get("annotations") or {}).get(AUTO_UPDATE, "")
    return True if value in _TRUE else False if value in _FALSE else None


def _same_spec(wanted: Object, current: Object) -> bool:
    spec: dict[str, Any] = wanted["spec"]
    if wanted["metadata"]["name"] == "exempt" and "exempt" in spec:
        if current["spec"].get("exempt") is None:
            return False
        spec = {**spec, "exempt": current["spec"]["exempt"]}
    return bool(spec == current["spec"])
