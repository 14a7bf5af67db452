"""What an eviction or a request for one is about."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.resource.formats import check_uuid
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import Path, invalid, required
from pilothouse.machinery.objects import Object

_UNSET: Final = "<unset>"
_SPEC: Final = Path("spec")


def target_cell(obj: Object) -> str:
    """The pod that is to go."""
    pod = (obj["spec"].get("target") or {}).get("pod")
    return _UNSET if pod is None else pod.get("name", "")


def target_type_cell(obj: Object) -> str:
    """What kind of thing is to go."""
    return _UNSET if (obj["spec"].get("target") or {}).get("pod") is None else "Pod"


def validate_target(spec: Object, old: Object | None, errs: ErrorList) -> None:
    """One pod, by name and uid; it never changes."""
    target, path = spec.get("target") or {}, _SPEC.child("target")
    if old is not None:
        errs.keep_declared(path, target, old.get("target") or {})
        return
    pod = target.get("pod")
    if pod is None:
        errs.declared.append(invalid(path, "", "must specify one of: `pod`"))
        return
    name, uid, where = pod.get("name", ""), pod.get("uid", ""), path.child("pod")
    if not name:
        errs.declared.append(required(where.child("name")))
    errs.declared += (invalid(where.child("name"), name, m) for m in names.check_dns1123_subdomain(name) if name)
    if uid:
        check_uuid(uid, where.child("uid"), errs.declared)
    else:
        errs.declared.append(required(where.child("uid")))
