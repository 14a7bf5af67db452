"""NetworkPolicies: who may talk to whom."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import check_old_cidr, check_port, refusals
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import GenerationRules
from pilothouse.machinery import labels, names
from pilothouse.machinery.addresses import Block, parse_cidr, warn_about_cidr
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_TYPES: Final = ("Ingress", "Egress")
_DIRECTIONS: Final = (("ingress", "from"), ("egress", "to"))


def _peers(obj: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, peer) for all rules."""
    for direction, side in _DIRECTIONS:
        for i, rule in enumerate((obj.get("spec") or {}).get(direction) or ()):
            for j, peer in enumerate(rule.get(side) or ()):
                yield f"spec.{direction}[{i}].{side}[{j}]", peer


class NetworkPolicyStrategy(Strategy):
    """Rules for pods; without policy types they are inferred from the rules."""

    generation_rules = GenerationRules(counted=True, counts_empty=True)
    columns = (
        NAME,
        Column(
            "Pod-Selector",
            "string",
            lambda obj: labels.format_object((obj.get("spec") or {}).get("podSelector") or {}),
            description=Doc("networking.v1.NetworkPolicySpec", "podSelector"),
        ),
        AGE,
    )

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for direction, _ in _DIRECTIONS:
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    if port.get("protocol") is None:
                        port["protocol"] = "TCP"

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _check_spec(obj, lenient=False, known=(), strict=self.strict_addresses)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        known = set()
        for _, peer in _peers(old):
            block = peer.get("ipBlock")
            if block is not None:
                known |= {block.get("cidr", ""), *(block.get("except") or ())}
        before = (old.get("spec") or {}).get("podSelector")
        lenient = bool(labels.validate_object(before, _SPEC))
        return _check_spec(obj, lenient=lenient, known=known, strict=self.strict_addresses)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        warnings = []
        for where, peer in _peers(obj):
            block = peer.get("ipBlock") or {}
            warnings += warn_about_cidr(f"{where}.ipBlock.cidr", block.get("cidr", ""))
            for at, text in enumerate(block.get("except") or ()):
                warnings += warn_about_cidr(f"{where}.ipBlock.except[{at}]", text)
        return warnings

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)


def _check_spec(obj: Object, *, lenient: bool, known: Collection[str], strict: bool) -> list[FieldError]:
    errs = ErrorList()
    errs.errors += _check_rules(obj.get("spec") or {}, lenient=lenient, known=known, strict=strict)
    for where, peer in _peers(obj):
        block = peer.get("ipBlock")
        if block is not None and not block.get("cidr"):
            errs.declared.append(required(Path(f"{where}.ipBlock.cidr")))
    return errs.listed()


def _check_rules(spec: dict[str, Any], *, lenient: bool, known: Collection[str], strict: bool) -> list[FieldError]:
    errs = labels.validate_object(spec.get("podSelector"), _SPEC.child("podSelector"), allow_invalid_values=lenient)
    for direction, side in _DIRECTIONS:
        for at, rule in enumerate(spec.get(direction) or ()):
            path = _SPEC.child(direction).index(at)
            for position, port in enumerate(rule.get("ports") or ()):
                errs += _check_port(path.child("ports").index(position), port)
            for position, peer in enumerate(rule.get(side) or ()):
                errs += _check_peer(path.child(side).index(position), peer, lenient=lenient, known=known, strict=strict)
    types = spec.get("policyTypes") or []
    path = _SPEC.child("policyTypes")
    if len(types) > len(_TYPES):
        return [*errs, invalid(path, types, "may not specify more than two policyTypes")]
    return errs + [not_supported(path.index(at), each, _TYPES) for at, each in enumerate(types) if each not in _TYPES]


def _check_port(path: Path, rule: dict[str, Any]) -> list[FieldError]:
    protocol, port, end = rule.get("protocol"), rule.get("port"), rule.get("endPort")
    errs: list[FieldError] = []
    if protocol is not None and protocol not in _PROTOCOLS:
        errs.append(not_supported(path.child("protocol"), protocol, _PROTOCOLS))
    where = path.child("endPort")
    if isinstance(port, str):
        if end is not None:
            errs.append(invalid(where, end, "may not be specified when `port` is non-numeric"))
        return errs + refusals(path.child("port"), port, names.check_port_name(port))
    if port is not None:
        errs += check_port(path.child("port"), port)
        if end is not None and end < port:
            errs.append(invalid(where, end, "must be greater than or equal to `port`"))
        return errs if end is None else errs + check_port(where, end)
    if end is not None:
        errs.append(invalid(where, end, "may not be specified when `port` is not specified"))
    return errs


def _check_peer(
    path: Path, peer: dict[str, Any], *, lenient: bool, known: Collection[str], strict: bool
) -> list[FieldError]:
    errs: list[FieldError] = []
    count = 0
    for key in ("podSelector", "namespaceSelector"):
        if peer.get(key) is not None:
            count += 1
            errs += labels.validate_object(peer[key], path.child(key), allow_invalid_values=lenient)
    block = peer.get("ipBlock")
    if block is not None:
        errs += _check_block(path.child("ipBlock"), block, known, strict)
        if count:
            errs.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif not count:
        errs.append(required(path, "must specify a peer"))
    return errs


def _check_block(path: Path, block: dict[str, Any], known: Collection[str], strict: bool) -> list[FieldError]:
    text = block.get("cidr", "")
    if not text:
        return []
    errs = check_old_cidr(path.child("cidr"), text, known, strict=strict)
    outer = parse_cidr(text)
    if outer is None:
        return errs
    for at, part in enumerate(block.get("except") or ()):
        where = path.child("except").index(at)
        errs += check_old_cidr(where, part, known, strict=strict)
        inner = parse_cidr(part)
        if inner is not None and not _is_strict_subset(inner, outer):
            errs.append(invalid(where, part, "must be a strict subset of `cidr`"))
    return errs


def _is_strict_subset(inner: Block, outer: Block) -> bool:
    if inner.address.bits != outer.address.bits or inner.prefix <= outer.prefix:
        return False
    shift = outer.address.bits - outer.prefix
    return inner.network.number >> shift == outer.network.number >> shift
