"""Storage versions: in which versions the servers of a cluster write and read a resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Object

_STATUS: Final = Path("status")
_SHOWN: Final = 3
_LABEL: Final = names.pattern_message(
    "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "my-name",
    "abc-123",
)
_DOC: Final = "apiserverinternal.v1alpha1.StorageVersionStatus"


def name_is_group_resource(name: str, prefix: bool) -> list[str]:
    """``<group>.<resource>``."""
    group, dot, resource = name.rpartition(".")
    if not dot:
        return ["name must be in the form of <group>.<resource>"]
    errs = [f"the group segment {message}" for message in names.check_dns1123_subdomain(group)]
    return errs + [f"the resource segment {message}" for message in names.check_dns1035_label(resource)]


def _check_version(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
        return [f"an apiVersion is {_LABEL} {suffix}"]
    errs = []
    if len(parts) == 2:
        found = names.check_dns1123_subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        errs += [f"group part: {message}" for message in found]
    found = names.check_dns1035_label(parts[-1]) if parts[-1] else ["must be non-empty"]
    return errs + [f"version part: {message}" for message in found]


def validate_status(obj: Object) -> list[FieldError]:
    """Errors of what the servers report."""
    errs: list[FieldError] = []
    status = obj.get("status") or {}
    servers = status.get("storageVersions") or []
    seen: set[str] = set()
    for position, server in enumerate(servers):
        path = _STATUS.child("storageVersions").index(position)
        identity = server.get("apiServerID", "")
        if identity in seen:
            errs.append(duplicate(path.child("apiServerID"), identity))
        seen.add(identity)
        _validate_server(server, path, errs)
    _validate_common(status.get("commonEncodingVersion"), servers, errs)
    _validate_conditions(status.get("conditions") or [], errs)
    return errs


def _validate_server(server: Object, path: Path, errs: list[FieldError]) -> None:
    identity, written = server.get("apiServerID", ""), server.get("encodingVersion", "")
    read, served = server.get("decodableVersions") or [], server.get("servedVersions") or []
    errs += (invalid(path.child("apiServerID"), identity, m) for m in names.check_dns1123_subdomain(identity))
    _validate_version(written, path.child("encodingVersion"), errs)
    for position, version in enumerate(read):
        _validate_version(version, path.child("decodableVersions").index(position), errs)
    if written not in read:
        why = f"decodableVersions must include encodingVersion {written}"
        errs.append(invalid(path.child("decodableVersions"), server.get("decodableVersions"), why))
    for position, version in enumerate(served):
        where = path.child("servedVersions").index(position)
        _validate_version(version, where, errs)
        if version not in read:
            listed = " ".join(read)
            why = f"individual served version : {version} must be included in decodableVersions : [{listed}]"
            errs.append(invalid(where, version, why))


def _validate_version(text: str, path: Path, errs: list[FieldError]) -> None:
    messages = _check_version(text)
    if messages:
        errs.append(invalid(path, text, ",".join(messages)))


def _validate_common(common: str | None, servers: list[Object], errs: list[FieldError]) -> None:
    versions = {server.get("encodingVersion", "") for server in servers}
    actual = next(iter(versions)) if len(versions) == 1 else None
    path = _STATUS.child("commonEncodingVersion")
    if actual is None and common is not None:
        why = (
            "should be nil if servers do not agree on the same encoding version, or if there is no server reporting "
            "the supported versions yet"
        )
        errs.append(invalid(path, common, why))
    elif actual is not None and common is None:
        errs.append(invalid(path, None, f"the common encoding version is {actual}"))
    elif actual is not None and actual != common:
        errs.append(invalid(path, common, f"the actual common encoding version is {actual}"))


def _validate_conditions(conditions: list[Object], errs: list[FieldError]) -> None:
    seen: dict[str, int] = {}
    for position, condition in enumerate(conditions):
        path, named = _STATUS.index(position), condition.get("type", "")
        if named in seen:
            why = f"the type of the condition is not unique, it also appears in conditions[{seen[named]}]"
            errs.append(invalid(path.child("type"), named, why))
        seen[named] = position
        for key in ("type", "status"):
            value = condition.get(key, "")
            errs += (invalid(path.child(key), value, message) for message in names.check_label_key(value))
        errs += (required(path.child(key)) for key in ("reason", "message") if not condition.get(key))


class StorageVersionStatusStrategy(ResettingStatusStrategy):
    """What the servers report."""

    update_rules = UpdateRules(allow_unconditional=False)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_status(obj)


def _versions(obj: Object) -> str:
    servers = (obj.get("status") or {}).get("storageVersions") or ()
    listed = [f"{s.get('apiServerID', '')}={s.get('encodingVersion', '')}" for s in servers]
    text = ",".join(listed[:_SHOWN]) or "<unset>"
    return text if len(listed) <= _SHOWN else f"{text} + {len(listed) - _SHOWN} more..."


class StorageVersionStrategy(StatusKeeper):
    """Storage versions."""

    type_name = "apiserverinternal.v1alpha1.StorageVersion"
    validate_name = staticmethod(name_is_group_resource)
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": StorageVersionStatusStrategy}
    columns = (
        NAME,
        Column(
            "CommonEncodingVersion",
            "string",
            lambda o: (o.get("status") or {}).get("commonEncodingVersion", "<unset>"),
            description=Doc(_DOC, "commonEncodingVersion"),
        ),
        Column("StorageVersions", "string", _versions, description=Doc(_DOC, "storageVersions")),
        AGE,
    )

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_status(obj)
