"""What a definition leaves open."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

_VERSIONS: Final = "conversionReviewVersions"


def set_defaults(crd: Object) -> None:
    """Fill in the singular and list kind, the conversion strategy, a webhook's port, and the first stored version."""
    spec = crd["spec"]
    names = spec["names"]
    if not names.get("singular") and names.get("kind"):
        names["singular"] = names["kind"].lower()
    if not names.get("listKind") and names.get("kind"):
        names["listKind"] = names["kind"] + "List"
    conversion = spec.get("conversion")
    if conversion is None:
        spec["conversion"] = conversion = {"strategy": "None"}
    webhook = conversion.get("webhook")
    if webhook is not None and webhook.get("clientConfig") is None and as_given(webhook, _VERSIONS) is None:
        del conversion["webhook"]
    service = (((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")) or None
    if service is not None and service.get("port") is None:
        service["port"] = 443
    status = crd.get("status")
    if status is not None and not status.get("storedVersions"):
        stored = [version["name"] for version in spec.get("versions") or () if version.get("storage")]
        if stored:
            status["storedVersions"] = stored[:1]
