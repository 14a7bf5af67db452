"""What a claim's status says of its devices: results, the configuration that goes with them, and where they are."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.devices.allocator import Choice, Taken
from pilothouse.simulation.scheduler.devices.pools import Device


def allocation_of(claim: Object, choice: Choice, node_name: str) -> Object:
    """The ``status.allocation`` of a claim."""
    devices: Object = {"results": [_result(each) for each in choice.devices]}
    config = _config(claim, choice)
    if config:
        devices["config"] = config
    allocation: Object = {"devices": devices}
    selector = _node_selector([each.device for each in choice.devices], node_name)
    if selector is not None:
        allocation["nodeSelector"] = selector
    return allocation


def _result(taken: Taken) -> Object:
    request, device = taken.request, taken.device
    result: Object = {
        "request": request.full_name,
        "driver": device.id.driver,
        "pool": device.id.pool,
        "device": device.id.device,
    }
    if request.is_admin:
        result["adminAccess"] = True
    if request.spec.get("tolerations"):
        result["tolerations"] = request.spec["tolerations"]
    if device.is_shared:
        result["shareID"] = str(uuid.uuid4())
    if taken.amounts:
        result["consumedCapacity"] = {name: str(amount) for name, amount in taken.amounts.items()}
    for name in ("bindingConditions", "bindingFailureConditions"):
        if device.spec.get(name):
            result[name] = device.spec[name]
    return result


def _config(claim: Object, choice: Choice) -> list[Object]:
    """Configurations of the classes, each once, then those of the claim that concern what was chosen."""
    chosen = [choice.chosen[index] for index in sorted(choice.chosen)]
    classes: dict[str, tuple[Object, list[str]]] = {}
    for request in chosen:
        metadata = request.device_class["metadata"]
        classes.setdefault(metadata["name"], (request.device_class, []))[1].append(request.full_name)
    found = [
        {"source": "FromClass", "requests": names, **config}
        for device_class, names in classes.values()
        for config in device_class["spec"].get("config") or ()
    ]
    names = {name for request in chosen for name in (request.base_name, request.full_name)}
    for config in (claim["spec"].get("devices") or {}).get("config") or ():
        meant = config.get("requests") or []
        if not meant or names & set(meant):
            found.append({**config, "source": "FromClaim", "requests": meant})
    for config in found:
        meant = set(config["requests"])
        if all(meant & {request.base_name, request.full_name} for request in chosen) or not meant:
            del config["requests"]
    return found


def _node_selector(devices: Iterable[Device], node_name: str) -> Object | None:
    """Where the devices can be used: on this node, on some, or anywhere."""
    fields: list[Any] = []
    expressions: list[Any] = []
    for device in devices:
        holder = device.spec if device.slice["spec"].get("perDeviceNodeSelection") else device.slice["spec"]
        if holder.get("nodeName") or device.spec.get("bindsToNode"):
            only = {"key": "metadata.name", "operator": "In", "values": [node_name]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        for term in (holder.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
            fields += [each for each in term.get("matchFields") or () if each not in fields]
            expressions += [each for each in term.get("matchExpressions") or () if each not in expressions]
    union: Object = {}
    if fields:
        union["matchFields"] = fields
    if expressions:
        union["matchExpressions"] = expressions
    return {"nodeSelectorTerms": [union]} if union else None
