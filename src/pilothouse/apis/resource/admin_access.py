"""Devices that others use may be looked into from namespaces that are labelled for it, and from no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilothouse.apis.strategy import NamespaceLabels
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, internal
from pilothouse.machinery.objects import Object

LABEL: Final = "resource.kubernetes.io/admin-access"
_REQUESTS: Final = Path("spec", "devices", "requests")
_RESULTS: Final = Path("status", "allocation", "devices", "results")


def check_requests(spec: Object, namespace: str, labels_of: NamespaceLabels | None) -> list[FieldError]:
    """The error of a new claim, or of a template, that asks for it where nobody may have it."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    return _check((request.get("exactly") or {} for request in requests), _REQUESTS, namespace, labels_of)


def check_results(status: Object, old: Object, namespace: str, labels_of: NamespaceLabels | None) -> list[FieldError]:
    """The same for an allocation; what was granted stays granted."""
    if any(result.get("adminAccess") for result in _results(old)):
        return []
    return _check(_results(status), _RESULTS, namespace, labels_of)


def _results(status: Object) -> list[Object]:
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or []


def _check(items: Iterable[Object], path: Path, namespace: str, labels_of: NamespaceLabels | None) -> list[FieldError]:
    asking = next((position for position, item in enumerate(items) if item.get("adminAccess")), None)
    if asking is None or labels_of is None:
        return []
    where, labels = path.index(asking).child("adminAccess"), labels_of(namespace)
    if labels is None:
        why = f'could not retrieve namespace to verify admin access: namespaces "{namespace}" not found'
        return [internal(where, why)]
    if labels.get(LABEL) != "true":
        why = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"
        return [forbidden(where, why)]
    return []
