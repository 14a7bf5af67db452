"""Who may write which part of a claim's status.

Allocation and reservation need the right to ``resourceclaims/binding`` in the whole cluster, the state of devices that
to ``resourceclaims/driver`` of the name of each driver: for any node, or, for a service account on the node that the
claim is allocated to, for that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pilothouse.authz.attributes import Attributes as Question
from pilothouse.authz.authorizer import AuthorizationFailed, Authorizer, Decision, forbidden
from pilothouse.authz.guarding import Guard
from pilothouse.endpoints.admission import Admission, Attributes
from pilothouse.machinery import errors, field_errors
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.user import NODE_NAME, User, split_service_account

Status = dict[str, Any]
_GROUP: Final = "resource.k8s.io"
_GATE: Final = "DRAResourceClaimGranularStatusAuthorization"
_ALLOCATION: Final = Path("status", "allocation")
_DEVICES: Final = Path("status", "devices")


def guard_devices(admission: Admission | None, authorizer: Authorizer, gates: frozenset[str]) -> dict[str, Guard]:
    """By group, the admission that asks for these rights; nothing while the feature is off."""
    return {_GROUP: DeviceGuard(admission, authorizer)} if _GATE in gates else {}


class DeviceGuard(Guard):
    """Admission for resource claims."""

    def __init__(self, admission: Admission | None, authorizer: Authorizer) -> None:
        super().__init__(admission)
        self._authorizer = authorizer

    async def check(self, attributes: Attributes) -> None:
        if attributes.resource.resource != "resourceclaims" or attributes.subresource != "status":
            return
        errs = await status_errors(attributes, self._authorizer)
        if errs:
            raise errors.invalid(attributes.kind.group_kind, attributes.name, errs)


async def status_errors(attributes: Attributes, authorizer: Authorizer) -> list[FieldError]:
    """What the user may not change of what a write of the status changes."""
    status, old = _status(attributes.object), _status(attributes.old_object)
    errs: list[FieldError] = []
    verb = attributes.verb
    if any(status.get(part) != old.get(part) for part in ("allocation", "reservedFor")):
        refusal = await _refusal(authorizer, _question(attributes, verb, "binding"))
        if refusal:
            needed = f'resource="resourceclaims/binding", verb="{verb}" permission'
            why = f"changing status.allocation or status.reservedFor requires {needed}: {refusal}"
            errs.append(field_errors.forbidden(_ALLOCATION, why))
    if status.get("allocation") is None:
        return errs
    verbs = [f"arbitrary-node:{verb}"]
    if _runs_on(attributes.user, _node_of(status["allocation"])):
        verbs.insert(0, f"associated-node:{verb}")
    for driver in sorted(_changed_drivers(status, old)):
        refusal = await _first_refusal(authorizer, attributes, verbs, driver)
        if refusal:
            needed = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" permission'
            errs.append(field_errors.forbidden(_DEVICES, f"changing status.devices requires {needed}: {refusal}"))
    return errs


def _status(claim: Mapping[str, Any] | None) -> Status:
    return (claim or {}).get("status") or {}


def _question(attributes: Attributes, verb: str, subresource: str, namespace: str = "", name: str = "") -> Question:
    resource = attributes.resource
    return Question(
        attributes.user, verb, group=resource.group, version=resource.version, resource=resource.resource,
        subresource=subresource, namespace=namespace, name=name,
    )  # fmt: skip


async def _refusal(authorizer: Authorizer, question: Question) -> str:
    try:
        decision, reason = await authorizer.authorize(question)
    except AuthorizationFailed as failure:
        return forbidden(question, str(failure)).message
    return "" if decision is Decision.ALLOW else forbidden(question, reason).message


async def _first_refusal(authorizer: Authorizer, attributes: Attributes, verbs: Sequence[str], driver: str) -> str:
    """Empty if one of the verbs is allowed."""
    first = ""
    for verb in verbs:
        refusal = await _refusal(authorizer, _question(attributes, verb, "driver", attributes.namespace, driver))
        if not refusal:
            return ""
        first = first or refusal
    return first


def _changed_drivers(status: Status, old: Status) -> set[str]:
    """The drivers of devices whose state is new, changed or gone; it goes with the device."""
    from pilothouse.apis.resource.resource_claim.status_validation import allocated_devices, device_key

    lost = allocated_devices(old) - allocated_devices(status)
    known = {device_key(device): device for device in old.get("devices") or ()}
    changed: set[str] = set()
    for device in status.get("devices") or ():
        key = device_key(device)
        if key not in lost and known.pop(key, None) != device:
            changed.add(device.get("driver", ""))
    return changed | {device.get("driver", "") for device in known.values()}


def _node_of(allocation: Mapping[str, Any]) -> str:
    terms: list[dict[str, Any]] = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions") or len(terms[0].get("matchFields") or ()) != 1:
        return ""
    field = terms[0]["matchFields"][0]
    values: list[str] = field.get("values") or []
    named = field.get("key") == "metadata.name" and field.get("operator") == "In" and len(values) == 1
    return values[0] if named else ""


def _runs_on(user: User, node: str) -> bool:
    named = tuple(user.extra.get(NODE_NAME, ()))
    return bool(node) and split_service_account(user.name) is not None and named == (node,)
