"""Nodes: their strategies, columns and field labels. The rules are in ``node_validation``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.node.validation import validate_node, validate_node_update
from pilothouse.apis.core.resource_names import round_up_resources
from pilothouse.apis.strategy import Column, Context, Doc, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.machinery.addresses import warn_about_cidr
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"
_INFO: Final = "core.v1.NodeSystemInfo"


def default_node(obj: Object) -> None:
    """The block and the list of blocks agree, the single one wins; what is allocatable is the capacity unless told."""
    spec = obj.setdefault("spec", {})
    block, blocks = spec.get("podCIDR"), spec.get("podCIDRs")
    if block and (not blocks or blocks[0] != block):
        spec["podCIDRs"] = [block]
    elif blocks:
        spec["podCIDR"] = blocks[0]
    status = obj.get("status") or {}
    if "capacity" in status and as_given(status, "allocatable") is None:
        status["allocatable"] = dict(status["capacity"])
    for key in ("capacity", "allocatable"):
        round_up_resources(status.get(key))


def _status_cell(obj: Object) -> str:
    ready = [c.get("status") for c in (obj.get("status") or {}).get("conditions") or () if c.get("type") == "Ready"]
    words = [("Ready" if ready[-1] == "True" else "NotReady") if ready else "Unknown"]
    if (obj.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles_cell(obj: Object) -> str:
    roles = set()
    for key, value in (obj["metadata"].get("labels") or {}).items():
        if key.startswith(_ROLE_PREFIX) and len(key) > len(_ROLE_PREFIX):
            roles.add(key[len(_ROLE_PREFIX) :])
        elif key == _ROLE_LABEL and value:
            roles.add(value)
    return ",".join(sorted(roles)) or "<none>"


def _info(obj: Object) -> dict[str, Any]:
    return (obj.get("status") or {}).get("nodeInfo") or {}


def _info_column(title: str, field: str) -> Column:
    return Column(
        title, "string", lambda obj: _info(obj).get(field) or "<unknown>", priority=1, description=Doc(_INFO, field)
    )


def _kernel_cell(obj: Object) -> str:
    version = _info(obj).get("kernelVersion") or "<unknown>"
    arch = _info(obj).get("architecture")
    return f"{version} ({arch})" if arch else version


def _address_column(title: str, type_: str) -> Column:
    def cell(obj: Object) -> str:
        found = (obj.get("status") or {}).get("addresses") or ()
        return next((a.get("address", "") for a in found if a.get("type") == type_), "<none>")

    return Column(title, "string", cell, priority=1, description=Doc("core.v1.NodeStatus", "addresses"))


COLUMNS: Final = (
    NAME,
    Column("Status", "string", _status_cell, description="The status of the node"),
    Column("Roles", "string", _roles_cell, description="The roles of the node"),
    AGE,
    Column(
        "Version",
        "string",
        lambda obj: _info(obj).get("kubeletVersion", ""),
        description=Doc(_INFO, "kubeletVersion"),
    ),
    _address_column("Internal-IP", "InternalIP"),
    _address_column("External-IP", "ExternalIP"),
    _info_column("OS-Image", "osImage"),
    Column("Kernel-Version", "string", _kernel_cell, priority=1, description=Doc(_INFO, "kernelVersion")),
    _info_column("Container-Runtime", "containerRuntimeVersion"),
)


class NodeStatusStrategy(StatusStrategy):
    """``/status``: kubelets report here. The long-gone dynamic configuration stays only where it already is."""

    def default(self, obj: Object) -> None:
        default_node(obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        if (old.get("status") or {}).get("config") is None:
            (obj.get("status") or {}).pop("config", None)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_node_update(obj, old)


class NodeStrategy(Strategy):
    """A node may be created with a status; afterwards that changes through ``/status`` only."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": NodeStatusStrategy}
    reset_fields = ("status",)
    field_labels = frozenset({"spec.unschedulable"})
    field_sources = field_labels
    columns = COLUMNS

    def default(self, obj: Object) -> None:
        default_node(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["spec"].pop("configSource", None)
        (obj.get("status") or {}).pop("config", None)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status", {})
        if (old.get("spec") or {}).get("configSource") is None:
            obj["spec"].pop("configSource", None)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_node(obj, strict=self.strict_addresses)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_node(obj, strict=self.strict_addresses) + validate_node_update(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        spec = obj["spec"]
        warnings = []
        if spec.get("configSource") is not None:
            warnings.append("spec.configSource: the feature is removed")
        if spec.get("externalID"):
            warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for at, block in enumerate(spec.get("podCIDRs") or ()):
            warnings += warn_about_cidr(f"spec.podCIDRs[{at}]", block)
        return warnings

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)

    def fields(self, obj: Object) -> dict[str, str]:
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        if name == "metadata.namespace":
            raise ValueError(f"field label not supported: {name}")
        return super().convert_field(name, value)
