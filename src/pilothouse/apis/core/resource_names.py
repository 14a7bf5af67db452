"""Resources that quantities are given of: which names are standard, counted in whole numbers, or open to quotas.

Amounts are texts in canonical form. The few that are really used are parsed once and remembered.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pilothouse.apis.core.checks import check_not_negative, check_qualified_name
from pilothouse.machinery import names, quantity
from pilothouse.machinery.field_errors import FieldError, Named, Path, invalid

CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED: Final = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_QUOTA: Final = CONTAINER_RESOURCES | _COUNTED | {
    "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage",
}  # fmt: skip
_STANDARD: Final = _QUOTA | {"storage"}
HUGE_PAGES: Final = "hugepages-"
_NATIVE_PREFIX: Final = "kubernetes.io/"


@lru_cache(maxsize=4096)
def amount(text: str) -> quantity.Quantity:
    """The quantity of a canonical text."""
    return quantity.parse(text)


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_quota_resource(name: str) -> bool:
    """Whether a quota may limit it by its bare name."""
    return name in _QUOTA or is_huge_page(name) or name.startswith("requests.hugepages-")


def is_native(name: str) -> bool:
    """Whether it belongs to Kubernetes itself."""
    return "/" not in name or _NATIVE_PREFIX in name


def is_extended(name: str) -> bool:
    """Whether it is a resource some vendor adds to nodes."""
    return not is_native(name) and not name.startswith("requests.") and not names.check_label_key(f"requests.{name}")


def may_overcommit(name: str) -> bool:
    """Whether requests may stay below limits."""
    return is_native(name) and not is_huge_page(name)


def is_counted(name: str) -> bool:
    """Whether it comes in whole units only."""
    return name in _COUNTED or is_extended(name)


def is_pod_level(name: str) -> bool:
    """Whether it can be given to a pod as a whole."""
    return name in ("cpu", "memory") or is_huge_page(name)


def check_resource_name(path: Path, name: str) -> list[FieldError]:
    """Any resource's name: standard, or with a domain."""
    shown = Named(name)
    errs = check_qualified_name(path, shown)
    if errs:
        return errs
    if "/" not in name and name not in _STANDARD and not is_quota_resource(name):
        return [invalid(path, shown, "must be a standard resource type or fully qualified")]
    return []


def check_container_resource_name(path: Path, name: str) -> list[FieldError]:
    """A resource that containers may ask for."""
    errs = check_resource_name(path, name)
    if "/" not in name:
        if name not in CONTAINER_RESOURCES and not is_huge_page(name):
            errs.append(invalid(path, Named(name), "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errs.append(invalid(path, Named(name), "doesn't follow extended resource name standard"))
    return errs


def check_quota_resource_name(path: Path, name: str) -> list[FieldError]:
    """A resource that quotas may limit."""
    errs = check_resource_name(path, name)
    if "/" not in name and not is_quota_resource(name):
        errs.append(invalid(path, Named(name), "must be a standard resource for quota"))
    return errs


def check_quantity(path: Path, name: str, text: str) -> list[FieldError]:
    """An amount of a resource: not negative, and whole where it counts things."""
    value = amount(text)
    errs = check_not_negative(path, value)
    if name not in CONTAINER_RESOURCES and is_counted(name) and value.milli_value() % 1000:
        errs.append(invalid(path, text, "must be an integer"))
    return errs


def round_up_resources(resources: dict[str, Any] | None) -> None:
    """Amounts are kept to a thousandth; what is finer is rounded up."""
    for name, text in (resources or {}).items():
        if text[-1:] in "un" or "." in text or "e" in text or "E" in text:
            resources[name] = str(quantity.parse(text).round_up(-3))  # type: ignore[index]
