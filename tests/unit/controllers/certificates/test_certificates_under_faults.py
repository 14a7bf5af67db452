"""Whatever fails and whenever they are killed: requests are approved, signed or refused once, and cleared away."""

from __future__ import annotations

from collections import Counter

import pytest

from pilothouse.controllers.certificates.requests import CLIENT, KUBELET_CLIENT, KUBELET_SERVING
from pilothouse.controllers.manager.context import ManagerSettings
from pilothouse.credentials.pki import Pki
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import User

from ..trouble import SEEDS, TroubledControllers, once
from .test_certificates import CLIENT_USAGES, SERVING_USAGES, pkcs10

GROUP, RESOURCE = "certificates.k8s.io", "certificatesigningrequests"
MODULES = ("certificates.approver", "certificates.signer", "certificates.cleaner")
RBAC = "rbac.authorization.k8s.io"


def settings(pki: Pki) -> ManagerSettings:
    return ManagerSettings(str(pki.ca_cert), str(pki.ca_cert), str(pki.ca_key))


def certificate_of(request: Object) -> str:
    return (request.get("status") or {}).get("certificate") or ""


def types_of(request: Object) -> list[str]:
    return [each["type"] for each in (request.get("status") or {}).get("conditions") or ()]


def each_condition_once(requests: list[Object]) -> None:
    for request in requests:
        assert all(count == 1 for count in Counter(types_of(request)).values()), types_of(request)
        assert not (certificate_of(request) and "Failed" in types_of(request))


async def ask(cluster: TroubledControllers) -> None:
    """Nodes ask for what they may have; an administrator approves what is right, what is wrong, and leaves one."""
    role = f"system:{GROUP}:{RESOURCE}:selfnodeclient"
    subject = {"apiGroup": RBAC, "kind": "Group", "name": "system:nodes"}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    binding = {"metadata": {"name": "approve"}, "roleRef": reference, "subjects": [subject]}
    await cluster.of(RBAC, "v1", "clusterrolebindings").create(binding)
    for name in ("n0", "n1", "n2"):
        node = User(f"system:node:{name}", groups=("system:nodes", "system:authenticated"))
        spec = {"request": pkcs10(node.name), "signerName": KUBELET_CLIENT, "usages": CLIENT_USAGES}
        requests = cluster.clients.as_user(node, "kubelet").of(GROUP, "v1", RESOURCE)
        await requests.create({"metadata": {"name": name}, "spec": spec})
    requests = cluster.of(GROUP, "v1", RESOURCE)
    for name, signer, usages in (
        ("client", CLIENT, ["client auth"]),
        ("wrong", KUBELET_SERVING, SERVING_USAGES),
        ("left", CLIENT, ["client auth"]),
    ):
        spec = {"request": pkcs10("somebody", ()), "signerName": signer, "usages": usages}
        made = await requests.create({"metadata": {"name": name}, "spec": spec})
        if name != "left":
            approved = {"type": "Approved", "status": "True", "reason": "Test", "message": ""}
            await requests.update({**made, "status": {"conditions": [approved]}}, subresource="approval")


@pytest.mark.parametrize("seed", SEEDS)
async def test_requests(seed: int) -> None:
    async with TroubledControllers(seed, *MODULES, settings=settings) as cluster:
        informer = cluster.informers.of(GROUP, "v1", RESOURCE)
        cluster.never(informer, once(certificate_of))
        cluster.never(informer, each_condition_once)
        await ask(cluster)

        async def are_settled() -> bool:
            found = {each["metadata"]["name"]: each for each in await cluster.all(GROUP, RESOURCE)}
            signed = {name for name, each in found.items() if certificate_of(each)}
            return (
                signed == {"n0", "n1", "n2", "client"}
                and types_of(found["wrong"]) == ["Approved", "Failed"]
                and not types_of(found["left"])
            )

        await cluster.survive(are_settled)
        cluster.clock.advance(2 * 3600)

        async def are_cleared() -> bool:
            cluster.clock.advance(3600)
            return [each["metadata"]["name"] for each in await cluster.all(GROUP, RESOURCE)] == ["left"]

        await cluster.survive(are_cleared)
