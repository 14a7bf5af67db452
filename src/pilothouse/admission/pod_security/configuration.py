"""The configuration of PodSecurity: defaults for namespaces without labels, and who is exempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.admission.configuration import ConfigurationError, require_kind
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

_GROUP: Final = "pod-security.admission.config.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")


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
    errs: list[FieldError] = []
    defaults = raw.get("defaults") or {}
    modes = [_read_mode(defaults, mode, errs) for mode in ("enforce", "audit", "warn")]
    exemptions = raw.get("exemptions") or {}
    names = {
        "namespaces": _read_names(exemptions, "namespaces", check_dns1123_label, errs),
        "runtimeClasses": _read_names(exemptions, "runtimeClasses", check_dns1123_subdomain, errs),
        "usernames": _read_names(exemptions, "usernames", _check_username, errs),
    }
    if errs:
        raise ConfigurationError(aggregate(str(error) for error in errs))
    return Configuration(Policy(*modes), names["namespaces"], names["usernames"], names["runtimeClasses"])


def _read_mode(defaults: dict[str, Any], mode: str, errs: list[FieldError]) -> LevelVersion:
    level, minor = PRIVILEGED, LATEST
    text = defaults.get(mode) or PRIVILEGED
    try:
        level = parse_level(text)
    except ValueError as error:
        errs.append(invalid(Path("defaults", mode), text, str(error)))
    text = defaults.get(f"{mode}-version") or "latest"
    try:
        minor = parse_version(text)
    except ValueError as error:
        errs.append(invalid(Path("defaults", f"{mode}-version"), text, str(error)))
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
