"""Table columns of workload kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.strategy import Column, Doc, Object
from pilothouse.machinery import labels

_READY_WORDS: Final = "Number of the pod with ready state"


def spec_cell(name: str, default: Any = 0) -> Callable[[Object], Any]:
    """A value of the spec."""
    return lambda obj: obj["spec"].get(name, default)


def status_cell(name: str, default: Any = 0) -> Callable[[Object], Any]:
    """A value of the status."""
    return lambda obj: (obj.get("status") or {}).get(name, default)


def container_columns(template_of: Callable[[Object], Object]) -> tuple[Column, Column]:
    """Names and images of a template's containers."""

    def listed(field: str) -> Callable[[Object], str]:
        return lambda obj: ",".join(c.get(field, "") for c in template_of(obj)["spec"].get("containers") or ())

    return (
        Column(
            "Containers",
            "string",
            listed("name"),
            priority=1,
            description="Names of each container in the template.",
        ),
        Column(
            "Images",
            "string",
            listed("image"),
            priority=1,
            description="Images referenced by each container in the template.",
        ),
    )


def selector_column(cell: Callable[[Object], str], type_name: str) -> Column:
    """Which pods belong to the object."""
    return Column("Selector", "string", cell, priority=1, description=Doc(type_name, "selector"))


def selector_cell(obj: Object) -> str:
    """The selector as text, ``<none>`` for an empty one."""
    return labels.format_object(obj["spec"].get("selector"))


def _plain_selector_cell(obj: Object) -> str:
    try:
        return str(labels.from_object(obj["spec"].get("selector")))
    except labels.SelectorError:
        return "<invalid>"


def _ready_cell(obj: Object) -> str:
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


def _node_selector_cell(obj: Object) -> str:
    pairs = obj["spec"]["template"]["spec"].get("nodeSelector") or {}
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs)) or "<none>"


def _controller_cell(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group, _, _ = owner.get("apiVersion", "").rpartition("/")
            kind = owner.get("kind", "").lower()
            return f"{kind}.{group.lower()}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"
    return "<none>"


_CONTAINERS: Final = container_columns(lambda obj: obj["spec"]["template"])

DEPLOYMENT_COLUMNS: Final = (
    NAME,
    Column("Ready", "string", _ready_cell, description=_READY_WORDS),
    Column(
        "Up-to-date",
        "string",
        status_cell("updatedReplicas"),
        description=Doc("apps.v1.DeploymentStatus", "updatedReplicas"),
    ),
    Column(
        "Available",
        "string",
        status_cell("availableReplicas"),
        description=Doc("apps.v1.DeploymentStatus", "availableReplicas"),
    ),
    AGE,
    *_CONTAINERS,
    selector_column(_plain_selector_cell, "apps.v1.DeploymentSpec"),
)

REPLICA_SET_COLUMNS: Final = (
    NAME,
    Column("Desired", "integer", spec_cell("replicas"), description=Doc("apps.v1.ReplicaSetSpec", "replicas")),
    Column("Current", "integer", status_cell("replicas"), description=Doc("apps.v1.ReplicaSetStatus", "replicas")),
    Column(
        "Ready", "integer", status_cell("readyReplicas"), description=Doc("apps.v1.ReplicaSetStatus", "readyReplicas")
    ),
    AGE,
    *_CONTAINERS,
    selector_column(selector_cell, "apps.v1.ReplicaSetSpec"),
)

STATEFUL_SET_COLUMNS: Final = (
    NAME,
    Column("Ready", "string", _ready_cell, description=_READY_WORDS),
    AGE,
    *_CONTAINERS,
)


def _daemon_count(title: str, field: str) -> Column:
    return Column(title, "integer", status_cell(field), description=Doc("apps.v1.DaemonSetStatus", field))


DAEMON_SET_COLUMNS: Final = (
    NAME,
    _daemon_count("Desired", "desiredNumberScheduled"),
    _daemon_count("Current", "currentNumberScheduled"),
    _daemon_count("Ready", "numberReady"),
    _daemon_count("Up-to-date", "updatedNumberScheduled"),
    _daemon_count("Available", "numberAvailable"),
    Column("Node Selector", "string", _node_selector_cell, description=Doc("core.v1.PodSpec", "nodeSelector")),
    AGE,
    *_CONTAINERS,
    selector_column(selector_cell, "apps.v1.DaemonSetSpec"),
)

CONTROLLER_REVISION_COLUMNS: Final = (
    NAME,
    Column("Controller", "string", _controller_cell, description="Controller of the object"),
    Column(
        "Revision",
        "string",
        lambda obj: obj.get("revision", 0),
        description=Doc("apps.v1.ControllerRevision", "revision"),
    ),
    AGE,
)
