"""The configuration of PodSecurity: defaults for namespaces without labels, and who is exempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.admission.configuration import InitializationError, decoded, require_kind
from pilothouse.admission.pod_security.policies import (
    LATEST,
    PRIVILEGED,
    LevelVersion,
    Policy,
    parse_level,
    parse_version,
)
from pilothouse.machinery.field_errors import FieldError, Path, aggregate, duplicate, invalid
from pilothouse.machinery.names import check_dns1123_label, check_dns1123_subdomain
from pilothouse.machinery.shapes import Struct

_GROUP: Final = "pod-security.admission.config.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
_MODES: Final = ("enforce", "audit", "warn")
_DEFAULTS: Final = {name: str for mode in _MODES for name in (mode, f"{mode}-version")}
_EXEMPTIONS: Final = {"usernames": [str], "namespaces": [str], "runtimeClasses": [str]}
_SHAPE: Final = Struct(
    "PodSecurityConfiguration",
    {
        "apiVersion": str,
        "kind": str,
        "defaults": Struct("PodSecurityDefaults", _DEFAULTS),
        "exemptions": Struct("PodSecurityExemptions", _EXEMPTIONS),
    },
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the owner of the cluster chose."""

    defaults: Policy = field(default_factory=Policy)
    namespaces: frozenset[str] = frozenset()
    usernames: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()


def read_configuration(raw: Any) -> Configuration:
    """Read the section of the admission configuration; raises ConfigurationError."""
    if raw is None:
        return Configuration()
    require_kind(raw, _GROUP, _VERSIONS, "PodSecurityConfiguration")
    raw = decoded(raw, _SHAPE)
    errs: list[FieldError] = []
    defaults = raw.get("defaults") or {}
    faults: list[str] = []
    modes = [_read_mode(defaults, mode, faults) for mode in _MODES]
    if faults:
        raise InitializationError(f"PodSecurity configuration error: {aggregate(faults)}")
    exemptions = raw.get("exemptions") or {}
    names = {
        "namespaces": _read_names(exemptions, "namespaces", check_dns1123_label, errs),
        "runtimeClasses": _read_names(exemptions, "runtimeClasses", check_dns1123_subdomain, errs),
        "usernames": _read_names(exemptions, "usernames", _check_username, errs),
    }
    if errs:
        raise InitializationError(f"PodSecurity invalid: {aggregate(str(error) for error in errs)}")
    return Configuration(Policy(*modes), names["namespaces"], names["usernames"], names["runtimeClasses"])


def _read_mode(defaults: dict[str, Any], mode: str, faults: list[str]) -> LevelVersion:
    level, minor = PRIVILEGED, LATEST
    text = defaults.get(mode) or PRIVILEGED
    try:
        level = parse_level(text)
    except ValueError as error:
        faults.append(f"{mode}: {error}")
    text = defaults.get(f"{mode}-version") or "latest"
    try:
        minor = parse_version(text)
    except ValueError as error:
        faults.append(f"{mode}-version: {error}")
    return LevelVersion(level, minor)


def _check_username(name: str) -> list[str]:
    return [] if name else ["username must not be empty"]


def _read_names(
    exemptions: dict[str, Any], kind: str, check: Callable[[str], list[str]], errs: list[FieldError]
) -> frozenset[str]:
    names: set[str] = set()
    for position, name in enumerate(exemptions.get(kind) or ()):
        path = Path("exemptions", kind).index(position)
        messages = check(name)
        if messages:
            errs.append(invalid(path, name, ", ".join(messages)))
        elif name in names:
            errs.append(duplicate(path, name))
        names.add(name)
    return frozenset(names)
