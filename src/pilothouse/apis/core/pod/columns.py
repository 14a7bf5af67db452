"""How pods look in tables: what they wait for or died of, summed up over their containers."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pilothouse.apis.ages import Age, age_of
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.strategy import Column, Doc
from pilothouse.machinery.objects import Object

_NONE: Final = "<none>"


class Summary(NamedTuple):
    """The three cells that need a look at every container."""

    ready: str
    status: str
    restarts: Age | str


class _Count:
    """Restarts and when the last of them was."""

    def __init__(self) -> None:
        self.total = 0
        self.last = ""

    def add(self, container: Object) -> None:
        self.total += container.get("restartCount", 0)
        ended = (container.get("lastState") or {}).get("terminated") or {}
        self.last = max(self.last, ended.get("finishedAt") or "")


def summarize(pod: Object) -> Summary:
    """What ``kubectl get pods`` shows of a pod's containers."""
    spec, status = pod["spec"], pod.get("status") or {}
    reason = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    sidecars = [c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    of_all, of_sidecars = _Count(), _Count()
    waiting, ready = _summarize_init(status, spec, sidecars, of_all, of_sidecars)
    count = of_all
    if waiting:
        reason = waiting
    if not waiting or _is_true(status, "Initialized"):
        count = of_sidecars
        reason, running = _summarize_regular(status, reason, count)
        ready += running
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Failed", "Succeeded"):
            reason = "Terminating"
    restarts: Age | str = str(count.total)
    if count.total and count.last:
        restarts = age_of(count.last, f"{count.total} (", " ago)")
    total = len(spec.get("containers") or ()) + len(sidecars)
    return Summary(f"{ready}/{total}", reason, restarts)


def _summarize_init(
    status: Object, spec: Object, sidecars: list[Any], of_all: _Count, of_sidecars: _Count
) -> tuple[str, int]:
    """What the first unfinished init container is at, if any, and how many sidecars are ready before it."""
    ready = 0
    for position, container in enumerate(status.get("initContainerStatuses") or ()):
        is_sidecar = container.get("name") in sidecars
        of_all.add(container)
        if is_sidecar:
            of_sidecars.add(container)
        state = container.get("state") or {}
        ended, held = state.get("terminated"), (state.get("waiting") or {}).get("reason", "")
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        if ended is not None:
            return "Init:" + _ending(ended), ready
        if held and held != "PodInitializing":
            return "Init:" + held, ready
        return f"Init:{position}/{len(spec.get('initContainers') or ())}", ready
    return "", ready


def _ending(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _summarize_regular(status: Object, reason: str, count: _Count) -> tuple[str, int]:
    """The reason, after a look at all containers from the last to the first, and how many are ready."""
    running = 0
    failure = ""
    for container in reversed(status.get("containerStatuses") or ()):
        count.add(container)
        state = container.get("state") or {}
        held, ended = (state.get("waiting") or {}).get("reason"), state.get("terminated")
        if held:
            reason = held
        elif ended is not None:
            reason = _ending(ended)
            if ended.get("exitCode"):
                failure = reason
        elif container.get("ready") and "running" in state:
            running += 1
    if reason == "Completed":
        if running and _is_ready(status):
            reason = "Running"
        elif failure:
            reason = failure
        elif running:
            reason = "NotReady"
    return reason, running


def _is_ready(status: Object) -> bool:
    conditions = status.get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _is_true(status: Object, kind: str) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind:
            return bool(condition.get("status") == "True")
    return False


def _address(pod: Object) -> str:
    addresses = (pod.get("status") or {}).get("podIPs") or ()
    return (addresses[0].get("ip") if addresses else "") or _NONE


def _gates(pod: Object) -> str:
    gates = pod["spec"].get("readinessGates")
    if not gates:
        return _NONE
    status = pod.get("status") or {}
    return f"{sum(_is_true(status, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"


COLUMNS: Final = (
    NAME,
    Column(
        "Ready",
        "string",
        lambda pod: summarize(pod).ready,
        description="The aggregate readiness state of this pod for accepting traffic.",
    ),
    Column(
        "Status",
        "string",
        lambda pod: summarize(pod).status,
        description="The aggregate status of the containers in this pod.",
    ),
    Column(
        "Restarts",
        "string",
        lambda pod: summarize(pod).restarts,
        description=(
            "The number of times the containers in this pod have been restarted and when the last container in this"
            " pod has restarted."
        ),
    ),
    AGE,
    Column("IP", "string", _address, priority=1, description=Doc("core.v1.PodStatus", "podIP")),
    Column(
        "Node",
        "string",
        lambda pod: pod["spec"].get("nodeName") or _NONE,
        priority=1,
        description=Doc("core.v1.PodSpec", "nodeName"),
    ),
    Column(
        "Nominated Node",
        "string",
        lambda pod: (pod.get("status") or {}).get("nominatedNodeName") or _NONE,
        priority=1,
        description=Doc("core.v1.PodStatus", "nominatedNodeName"),
    ),
    Column("Readiness Gates", "string", _gates, priority=1, description=Doc("core.v1.PodSpec", "readinessGates")),
)
