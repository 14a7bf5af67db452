"""ServiceCIDRs: the blocks from which services get their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import refusals
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.status import ResettingStatusStrategy
from pilothouse.apis.strategy import Column, Context, Doc, NamespaceLabels, Strategy
from pilothouse.machinery import addresses
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object

_CIDRS: Final = Path("spec", "cidrs")


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

    def __init__(self, gates: frozenset[str] | None = None, labels_of: NamespaceLabels | None = None) -> None:
        super().__init__(gates, labels_of)
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
