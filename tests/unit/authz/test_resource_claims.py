"""Who may write which part of a claim's status."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.authz.authorizer import Decision
from pilothouse.authz.resource_claims import status_errors
from pilothouse.endpoints.admission import UPDATE, Attributes
from pilothouse.machinery.gvk import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import NODE_NAME, User

DEVICE = {"driver": "d.example.com", "pool": "p", "device": "x"}
FIELDS = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
ALLOCATED = {
    "devices": {"results": [{"request": "r", **DEVICE}]},
    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": FIELDS}]},
}
BINDING = ("update", "binding", "", "")
ANY_NODE = ("arbitrary-node:update", "driver", "ns", "d.example.com")
OWN_NODE = ("associated-node:update", "driver", "ns", "d.example.com")
PLAIN = User("jane")
ON_NODE = User("system:serviceaccount:ns:driver", extra={NODE_NAME: ("n1",)})
ELSEWHERE = User("system:serviceaccount:ns:driver", extra={NODE_NAME: ("n2",)})


class Rights:
    """Allows what it is made of."""

    def __init__(self, *allowed: tuple[str, str, str, str]) -> None:
        self.allowed = allowed
        self.asked: list[tuple[str, str, str, str]] = []

    async def authorize(self, question: Any) -> tuple[Decision, str]:
        self.asked.append((question.verb, question.subresource, question.namespace, question.name))
        return (Decision.ALLOW if self.asked[-1] in self.allowed else Decision.NO_OPINION), "why not"


def change(user: User, old: Object, new: Object) -> Attributes:
    kind = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
    resource = GroupVersionResource("resource.k8s.io", "v1", "resourceclaims")
    return Attributes(
        UPDATE, kind, resource, "status", "ns", "c", user, {"status": new}, {"status": old}, {}, dry_run=False,
        verb="update",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("user", "old", "new", "asked"),
    [
        (PLAIN, {}, {"allocation": ALLOCATED}, [BINDING]),
        (PLAIN, {"allocation": ALLOCATED}, {}, [BINDING]),
        (PLAIN, {"allocation": ALLOCATED}, {"allocation": ALLOCATED}, []),
        (PLAIN, {"allocation": ALLOCATED}, {"allocation": ALLOCATED, "devices": [DEVICE]}, [ANY_NODE]),
        (ELSEWHERE, {"allocation": ALLOCATED}, {"allocation": ALLOCATED, "devices": [DEVICE]}, [ANY_NODE]),
        (ON_NODE, {"allocation": ALLOCATED}, {"allocation": ALLOCATED, "devices": [DEVICE]}, [OWN_NODE, ANY_NODE]),
        (PLAIN, {"allocation": ALLOCATED, "devices": [DEVICE]}, {"allocation": ALLOCATED}, [ANY_NODE]),
        (PLAIN, {"allocation": ALLOCATED, "devices": [DEVICE]}, {}, [BINDING]),
    ],
)
async def test_what_is_asked(user: User, old: Object, new: Object, asked: list[Any]) -> None:
    rights = Rights()
    errs = await status_errors(change(user, old, new), rights)  # type: ignore[arg-type]
    assert rights.asked == asked
    assert len(errs) == (1 if asked else 0)
    assert await status_errors(change(user, old, new), Rights(*asked[-1:])) == []  # type: ignore[arg-type]


async def test_refusals_say_what_is_needed() -> None:
    (error,) = await status_errors(change(PLAIN, {}, {"allocation": ALLOCATED}), Rights())  # type: ignore[arg-type]
    assert str(error) == (
        "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires "
        'resource="resourceclaims/binding", verb="update" permission: resourceclaims.resource.k8s.io is forbidden: '
        'User "jane" cannot update resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster '
        "scope: why not"
    )
    written = {"allocation": ALLOCATED, "devices": [DEVICE]}
    (error,) = await status_errors(change(ON_NODE, {"allocation": ALLOCATED}, written), Rights())  # type: ignore[arg-type]
    needed = 'resource="resourceclaims/driver", verb="[associated-node:update arbitrary-node:update]" permission: '
    assert f"changing status.devices requires {needed}" in str(error)
