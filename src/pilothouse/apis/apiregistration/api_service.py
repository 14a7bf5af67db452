"""API services: which server serves a group's version. Local ones are always available."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.metadata import validate_metadata
from pilothouse.apis.object_names import NameValidator
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Column, Context, StatusStrategy, Strategy, keep
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.apis.validation import well_formed
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_STATUSES: Final = ("True", "False", "Unknown")


def validate_service(obj: Object) -> list[FieldError]:
    """Errors of an API service."""
    errs: list[FieldError] = []
    spec = obj["spec"]
    group, version = spec.get("group", ""), spec.get("version", "")
    if not group and version != "v1":
        why = "only v1 may have an empty group and it better be legacy kube"
        errs.append(required(_SPEC.child("group"), why))
    if group:
        well_formed(group, names.check_dns1123_subdomain, _SPEC, "group", errs)
    well_formed(version, names.check_dns1035_label, _SPEC, "version", errs)
    for key, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        if not 0 < spec.get(key, 0) <= most:
            errs.append(invalid(_SPEC.child(key), spec.get(key, 0), f"must be positive and less than {most}"))
    _validate_backend(spec, errs)
    return errs


def _validate_backend(spec: Object, errs: list[FieldError]) -> None:
    service, insecure = spec.get("service"), spec.get("insecureSkipTLSVerify", False)
    bundle = base64.b64decode(spec.get("caBundle") or "")
    if service is None:
        if bundle:
            why = "local APIServices may not have a caBundle"
            errs.append(invalid(_SPEC.child("caBundle"), f"{len(bundle)} bytes", why))
        if insecure:
            why = "local APIServices may not have insecureSkipTLSVerify"
            errs.append(invalid(_SPEC.child("insecureSkipTLSVerify"), insecure, why))
        return
    path = _SPEC.child("service")
    errs += (required(path.child(key)) for key in ("namespace", "name") if not service.get(key))
    port = service.get("port", 0)
    messages = names.check_port_number(port)
    if messages:
        errs.append(invalid(path.child("port"), port, "port is not valid: " + ", ".join(messages)))
    if insecure and bundle:
        why = "may not be true if caBundle is present"
        errs.append(invalid(_SPEC.child("insecureSkipTLSVerify"), insecure, why))


def validate_service_status(obj: Object) -> list[FieldError]:
    """Errors of a status: conditions are true, false or unknown."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return [
        not_supported(Path("status", "conditions").index(at).child("status"), condition.get("status", ""), _STATUSES)
        for at, condition in enumerate(conditions)
        if condition.get("status") not in _STATUSES
    ]


class APIServiceStatusStrategy(StatusStrategy):
    """What the aggregator reports."""

    metadata_rules = MetadataRules(standard_finalizers=False, repeats_errors=True)
    reset_fields = ("metadata", "spec")
    update_rules = UpdateRules(allow_unconditional=False)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        keep(obj["metadata"], old["metadata"], "labels", "annotations", "finalizers", "ownerReferences")

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_service_status(obj)


def _service(obj: Object) -> str:
    service = obj["spec"].get("service")
    return "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"


def _available(obj: Object) -> Any:
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Available":
            status, reason = condition.get("status", ""), condition.get("reason", "")
            return f"{status} ({reason})" if reason and status != "True" else status
    return "Unknown"


class APIServiceStrategy(StatusKeeper):
    """API services."""

    metadata_rules = MetadataRules(standard_finalizers=False, repeats_errors=True)
    type_name = "apiregistration.v1.APIService"
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": APIServiceStatusStrategy}
    columns = (
        NAME,
        Column("Service", "string", _service, description="The reference to the service that hosts this API endpoint."),
        Column("Available", "string", _available, description="Whether this service is available."),
        AGE,
    )

    def default(self, obj: Object) -> None:
        service = obj["spec"].get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        if obj["spec"].get("service") is None:
            condition = {
                "type": "Available",
                "status": "True",
                "lastTransitionTime": ctx.now,
                "reason": "Local",
                "message": "Local APIServices are always available",
            }
            obj["status"] = {"conditions": [condition]}

    def name_rule(self, obj: Object) -> NameValidator:
        """A service is named after what it serves."""
        wanted = f"{obj['spec'].get('version', '')}.{obj['spec'].get('group', '')}"

        def check(name: str, prefix: bool) -> list[str]:
            why = [] if name == wanted else [f'must be `spec.version+"."+spec.group`: {quote(wanted)}']
            return names.check_path_segment_name(name) or why

        return check

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_service(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = validate_metadata(obj["metadata"], namespaced=False, validate_name=self.name_rule(obj))
        return errs + validate_service(obj)
