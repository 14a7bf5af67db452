"""Which address families a service gets: by its policy, the families and addresses it names, and what the cluster has.

Services never move between one and two families unless their policy says so, also not when the cluster's configuration
changes.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.checks import is_ipv6
from pilothouse.apis.core.service.addresses import validate_addresses
from pilothouse.apis.core.service.fields import HEADLESS, Spec, needs_cluster_ip
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.gvk import GroupKind

SERVICE: Final = GroupKind("", "Service")
_IPS: Final = Path("spec", "clusterIPs")
_FAMILIES: Final = Path("spec", "ipFamilies")
_POLICY: Final = Path("spec", "ipFamilyPolicy")


def settle_families(spec: Spec, before: Spec | None, name: str, configured: tuple[str, ...]) -> None:
    """Set ipFamilyPolicy and ipFamilies. ``configured`` has the cluster's families, the default one first.

    Raises the 422.
    """
    if not needs_cluster_ip(spec) or keeps_preference(spec, before):
        return
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = _default_policy(spec, before)
    _refuse(name, validate_addresses(spec, before))
    errs = _settle_change(spec, before) if before is not None else []
    if spec["ipFamilyPolicy"] == "SingleStack":
        why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        for key, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
            if len(spec.get(key) or ()) == 2:
                errs.append(invalid(_POLICY, spec["ipFamilyPolicy"], why.format(what)))
    errs += _infer_families(spec, configured)
    _refuse(name, errs)
    if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
        _complete(spec, configured[0], dual=spec["ipFamilyPolicy"] != "SingleStack")
        return
    _refuse(name, _check_configured(spec, configured))
    _complete(spec, configured[0], dual=spec["ipFamilyPolicy"] != "SingleStack" and len(configured) == 2)


def _refuse(name: str, errs: list[FieldError]) -> None:
    if errs:
        raise errors.invalid(SERVICE, name, errs)


def keeps_preference(spec: Spec, before: Spec | None) -> bool:
    """Whether both versions prefer two families and name the same addresses and families: nothing is to be done."""
    return (
        before is not None
        and spec.get("ipFamilyPolicy") == "PreferDualStack"
        and spec.get("type") == before.get("type")
        and needs_cluster_ip(spec)
        and before.get("ipFamilyPolicy") in (None, "PreferDualStack")
        and _same(spec, before, "clusterIPs")
        and _same(spec, before, "ipFamilies")
    )


def _same(spec: Spec, before: Spec, key: str) -> bool:
    return (spec.get(key) or []) == (before.get(key) or [])


def _default_policy(spec: Spec, before: Spec | None) -> str:
    if before is not None and before.get("ipFamilyPolicy") is not None:
        policy: str = before["ipFamilyPolicy"]
        return policy
    # What has no address and no pods of its own may have endpoints of any family.
    return "RequireDualStack" if spec.get("clusterIP") == HEADLESS and not spec.get("selector") else "SingleStack"


def _settle_change(spec: Spec, before: Spec) -> list[FieldError]:
    """To a single family: drop what was left as it was. To anything else: refuse that something was left out."""
    errs: list[FieldError] = []
    words = {"clusterIPs": "the secondary cluster IP", "ipFamilies": "the secondary IP family"}
    for key, what in words.items():
        values, old = spec.get(key) or [], before.get(key) or []
        if spec["ipFamilyPolicy"] == "SingleStack":
            if values == old and len(values) > 1:
                spec[key] = values[:1]
        elif values and len(values) < len(old):
            errs.append(invalid(_POLICY, spec["ipFamilyPolicy"], f"must be 'SingleStack' to release {what}"))
    return errs


def _infer_families(spec: Spec, configured: tuple[str, ...]) -> list[FieldError]:
    """Families follow from addresses that were named."""
    errs: list[FieldError] = []
    ips, families = spec.get("clusterIPs") or [], list(spec.get("ipFamilies") or [])
    for at, ip in enumerate(ips):
        if ip == HEADLESS:
            break
        family = "IPv6" if is_ipv6(ip) else "IPv4"
        if at < len(families):
            continue
        if family in configured:
            families.append(family)
        else:
            errs.append(invalid(_IPS.index(at), ips, f"{family} is not configured on this cluster"))
    if families:
        spec["ipFamilies"] = families
    return errs


def _check_configured(spec: Spec, configured: tuple[str, ...]) -> list[FieldError]:
    errs: list[FieldError] = []
    if spec["ipFamilyPolicy"] == "RequireDualStack" and len(configured) < 2:
        why = "this cluster is not configured for dual-stack services"
        errs.append(invalid(_POLICY, spec["ipFamilyPolicy"], why))
    for at, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in configured:
            errs.append(invalid(_FAMILIES.index(at), family, "not configured on this cluster"))
    return errs


def _complete(spec: Spec, default: str, *, dual: bool) -> None:
    families = spec.get("ipFamilies") or [default]
    if dual and len(families) == 1:
        families = [families[0], "IPv6" if families[0] == "IPv4" else "IPv4"]
    spec["ipFamilies"] = families
