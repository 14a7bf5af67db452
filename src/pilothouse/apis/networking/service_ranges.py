"""IPAddresses and ServiceCIDRs: the addresses of services as objects, and the blocks they are taken from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME, age_cell
from pilothouse.apis.core.checks import check_dns_subdomain, refusals
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.faults import Faults
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.status import ResettingStatusStrategy
from pilothouse.apis.strategy import Column, Context, Doc, Object, Strategy
from pilothouse.machinery import addresses, names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required

_PARENT: Final = Path("spec", "parentRef")
_CIDRS: Final = Path("spec", "cidrs")


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

    judges_prefix_on_update = True
    validate_name = staticmethod(name_is_ip)
    columns = (
        NAME,
        Column("ParentRef", "string", _parent_cell, description=Doc("networking.v1.IPAddressSpec", "parentRef")),
        # The original fills a third cell but declares no column for it.
        Column("", "string", age_cell),
    )

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        faults = Faults()
        _check_parent(faults, obj)
        return faults.listed()

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        faults = Faults()
        reference, before = ((each.get("spec") or {}).get("parentRef") for each in (obj, old))
        if reference is None:
            faults.declared.append(required(_PARENT))
        if faults.keep_declared(_PARENT, reference, before):
            _check_parent(faults, obj)
        elif reference is not None:
            # The declared rules stop at the change, so what is missing is told by the written ones.
            faults.errors += refusals_of_parent(reference, with_missing=True)
        return faults.listed()


def _check_parent(faults: Faults, obj: Object) -> None:
    reference = (obj.get("spec") or {}).get("parentRef")
    if reference is None:
        faults.declared.append(required(_PARENT))
        return
    faults.errors += refusals_of_parent(reference)
    faults.declared += (required(_PARENT.child(key)) for key in ("resource", "name") if not reference.get(key))


def refusals_of_parent(reference: dict[str, Any], *, with_missing: bool = False) -> list[FieldError]:
    """Faults of the parts of a reference that are there, and of those that must be."""
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


class ServiceCIDRStatusStrategy(ResettingStatusStrategy):
    """``/status``: conditions only; metadata stays as it is."""


class ServiceCIDRStrategy(Strategy):
    """One block, or one for each family; a second family may be added later."""

    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": ServiceCIDRStatusStrategy}
    columns = (
        NAME,
        Column(
            "CIDRs",
            "string",
            lambda obj: ",".join(_blocks(obj)),
            description=Doc("networking.v1.ServiceCIDRSpec", "cidrs"),
        ),
        AGE,
    )

    def __init__(self, gates: frozenset[str] | None = None) -> None:
        super().__init__(gates)
        self._wipes = "ServiceCIDRStatusFieldWiping" in self.gates
        self.reset_fields = ("status",) if self._wipes else ()

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if self._wipes:
            obj["status"] = {}

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        if self._wipes:
            obj["status"] = old.get("status", {})

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _check_blocks(_blocks(obj))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        blocks, before = _blocks(obj), _blocks(old)
        if len(blocks) == len(before):
            changed = (at for at, block in enumerate(before) if block != blocks[at])
            return [invalid(_CIDRS.index(at), blocks[at], IMMUTABLE) for at in changed]
        if len(before) == 1 and len(blocks) == 2:
            errs = [] if blocks[0] == before[0] else [invalid(_CIDRS.index(0), blocks[0], IMMUTABLE)]
            return errs + _check_blocks(blocks)
        return [invalid(_CIDRS, (obj.get("spec") or {}).get("cidrs"), IMMUTABLE)]


def _blocks(obj: Object) -> list[str]:
    return (obj.get("spec") or {}).get("cidrs") or []


def _check_blocks(blocks: list[str]) -> list[FieldError]:
    if not blocks:
        return [required(_CIDRS, "at least one CIDR required")]
    if len(blocks) > 2:
        shown = internal_form("networking.v1.ServiceCIDRSpec", {"cidrs": blocks})
        return [invalid(_CIDRS, shown, "may only hold up to 2 values")]
    errs: list[FieldError] = []
    for at, block in enumerate(blocks):
        errs += refusals(_CIDRS.index(at), block, addresses.check_cidr(block))
    families = [_family(block) for block in blocks]
    if len(blocks) == 2 and families[0] == families[1] != 0:
        why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        errs.append(invalid(_CIDRS, blocks, why))
    return errs


def _family(block: str) -> int:
    """How many bits addresses of a block have; 0 for what is none, or neither family's."""
    parsed = addresses.parse_cidr(block)
    return 0 if parsed is None or parsed.network.mapped else parsed.address.bits
