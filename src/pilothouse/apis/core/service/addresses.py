"""The rules for a service's cluster addresses, their families, and how both may change.

``validate_addresses`` is also asked by the allocator, before it hands out anything.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.checks import check_dual_stack, check_old_ip, is_ipv6
from pilothouse.apis.core.service.fields import HEADLESS, Spec, is_headless, needs_cluster_ip
from pilothouse.apis.validation import repeats
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, not_supported, required

IP_FAMILIES: Final = ("IPv4", "IPv6")
IP_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_SPEC: Final = Path("spec")
_IPS: Final = Path("spec", "clusterIPs")
_FAMILIES: Final = Path("spec", "ipFamilies")
_POLICY: Final = Path("spec", "ipFamilyPolicy")
_CHANGED: Final = "may not change once set"


def validate_addresses(spec: Spec, before: Spec | None, *, strict: bool = True) -> list[FieldError]:
    """Errors among clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy."""
    if not needs_cluster_ip(spec):
        return []
    ips: list[str] = spec.get("clusterIPs") or []
    families: list[str] = spec.get("ipFamilies") or []
    errs = _check_single(spec.get("clusterIP", ""), ips)
    errs += _check_families(families)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in IP_FAMILY_POLICIES:
        errs.append(not_supported(_POLICY, policy, IP_FAMILY_POLICIES))
    wrong = _check_ips(ips, (before or {}).get("clusterIPs") or (), strict)
    errs += wrong
    if len(ips) > 2:
        errs.append(invalid(_IPS, ips, "may only hold up to 2 values"))
    if wrong:
        return errs
    if len(ips) > 1:
        errs += check_dual_stack(_IPS, ips, ips, most=len(ips))
    if not is_headless(spec):
        errs += _check_match(ips, families)
    return errs


def _check_single(single: str, ips: list[str]) -> list[FieldError]:
    if not single:
        return [invalid(_IPS, ips, "must be empty when `clusterIP` is not specified")] if ips else []
    if not ips:
        return [required(_IPS, "")]
    return [] if ips[0] == single else [invalid(_IPS, ips, "first value must match `clusterIP`")]


def _check_families(families: list[str]) -> list[FieldError]:
    errs: list[FieldError] = []
    twice = repeats(families)
    for at, family in enumerate(families):
        if family not in IP_FAMILIES:
            errs.append(not_supported(_FAMILIES.index(at), family, IP_FAMILIES))
        if at in twice:
            errs.append(duplicate(_FAMILIES.index(at), family))
    return errs


def _check_ips(ips: list[str], known: Any, strict: bool) -> list[FieldError]:
    errs: list[FieldError] = []
    for at, ip in enumerate(ips):
        if at == 0 and ip == HEADLESS:
            if len(ips) > 1:
                errs.append(invalid(_IPS, ips, "'None' must be the first and only value"))
            continue
        errs += check_old_ip(_IPS.index(at), ip, known, strict=strict)
    return errs


def _check_match(ips: list[str], families: list[str]) -> list[FieldError]:
    errs: list[FieldError] = []
    for at, (ip, family) in enumerate(zip(ips, families, strict=False)):
        if family in IP_FAMILIES and is_ipv6(ip) != (family == "IPv6"):
            why = f"expected an {family} value as indicated by `ipFamilies[{at}]`"
            errs.append(invalid(_IPS.index(at), ip, why))
    return errs


def validate_address_change(spec: Spec, before: Spec) -> list[FieldError]:
    """A second address or family may come and go; the first stays, but for services that had none."""
    if not needs_cluster_ip(spec) or not needs_cluster_ip(before):
        return []
    headless, was_headless = is_headless(spec), is_headless(before)
    if headless and was_headless:
        return []
    errs = _check_ip_change(spec, spec.get("clusterIPs") or [], before.get("clusterIPs") or [])
    if headless == was_headless:
        errs += _check_family_change(spec, spec.get("ipFamilies") or [], before.get("ipFamilies") or [])
    return errs


def _releases_wrongly(spec: Spec) -> bool:
    return spec.get("ipFamilyPolicy") != "SingleStack"


def _check_ip_change(spec: Spec, ips: list[str], old: list[str]) -> list[FieldError]:
    if len(ips) == len(old):
        changed = (at for at, ip in enumerate(old) if ip != ips[at])
        return [invalid(_IPS.index(at), ips, _CHANGED) for at in changed]
    errs: list[FieldError] = []
    if not ips:
        errs.append(invalid(_IPS.index(0), spec.get("clusterIPs"), "primary clusterIP can not be unset"))
    if old and ips and ips[0] != old[0]:
        errs.append(invalid(_IPS.index(0), ips, _CHANGED))
    if len(ips) < len(old) and len(ips) == 1 and _releases_wrongly(spec):
        why = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errs.append(invalid(_POLICY, spec.get("ipFamilyPolicy"), why))
    return errs


def _check_family_change(spec: Spec, families: list[str], old: list[str]) -> list[FieldError]:
    where = _FAMILIES.index(0)
    if len(families) == len(old):
        return [invalid(where, families, _CHANGED) for at, family in enumerate(old) if family != families[at]]
    errs: list[FieldError] = []
    if len(families) < len(old) and not spec.get("clusterIPs"):
        errs.append(invalid(where, spec.get("ipFamilies"), "primary ipFamily can not be unset"))
    if old and families and families[0] != old[0]:
        errs.append(invalid(where, spec.get("clusterIPs"), _CHANGED))
    if len(families) < len(old) and len(families) == 1 and _releases_wrongly(spec):
        why = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errs.append(invalid(_POLICY, spec.get("ipFamilyPolicy"), why))
    return errs
