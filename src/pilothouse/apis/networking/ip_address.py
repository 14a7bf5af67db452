"""IPAddresses: the addresses of services as objects."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.columns import NAME, age_cell
from pilothouse.apis.core.checks import check_dns_subdomain, refusals
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.machinery import addresses, names
from pilothouse.machinery.field_errors import FieldError, Path, required
from pilothouse.machinery.objects import Object

_PARENT: Final = Path("spec", "parentRef")


def name_is_ip(name: str, prefix: bool) -> list[str]:
    """The object is named by the address it stands for."""
    return addresses.check_ip(name)


def _parent_cell(obj: Object) -> str:
    reference = (obj.get("spec") or {}).get("parentRef")
    if reference is None:
        return "<none>"
    group, resource = reference.get("group", ""), reference.get("resource", "")
    shown = (f"{resource}.{group}" if group else resource).lower()
    namespace = f"/{reference['namespace']}" if reference.get("namespace") else ""
    return f"{shown}{namespace}/{reference.get('name', '')}"


class IPAddressStrategy(Strategy):
    """An address and whom it belongs to, which never changes."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True, adds_letters=False)
    validate_name = staticmethod(name_is_ip)
    columns = (
        NAME,
        Column("ParentRef", "string", _parent_cell, description=Doc("networking.v1.IPAddressSpec", "parentRef")),
        # kube-apiserver fills a third cell but declares no column for it.
        Column("", "string", age_cell),
    )

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs = ErrorList()
        _check_parent(errs, obj)
        return errs.listed()

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = ErrorList()
        reference, before = ((each.get("spec") or {}).get("parentRef") for each in (obj, old))
        if reference is None:
            errs.declared.append(required(_PARENT))
        if errs.keep_declared(_PARENT, reference, before):
            _check_parent(errs, obj)
        elif reference is not None:
            # The declared rules stop at the change, so what is missing is told by the written ones.
            errs.errors += refusals_of_parent(reference, with_missing=True)
        return errs.listed()


def _check_parent(errs: ErrorList, obj: Object) -> None:
    reference = (obj.get("spec") or {}).get("parentRef")
    if reference is None:
        errs.declared.append(required(_PARENT))
        return
    errs.errors += refusals_of_parent(reference)
    errs.declared += (required(_PARENT.child(key)) for key in ("resource", "name") if not reference.get(key))


def refusals_of_parent(reference: dict[str, Any], *, with_missing: bool = False) -> list[FieldError]:
    """Errors of the parts of a reference that are there, and of those that must be."""
    errs: list[FieldError] = []
    if reference.get("group"):
        errs += check_dns_subdomain(_PARENT.child("group"), reference["group"])
    for key in ("resource", "name", "namespace"):
        value = reference.get(key)
        if value:
            errs += refusals(_PARENT.child(key), value, names.check_path_segment_name(value))
        elif with_missing and key != "namespace":
            errs.append(required(_PARENT.child(key)))
    return errs
