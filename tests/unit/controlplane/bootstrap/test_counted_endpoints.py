import pytest

from pilothouse.controllers.own_objects import existing
from pilothouse.controlplane.bootstrap.counted_endpoints import CountedEndpoints, with_address, without_address
from pilothouse.controlplane.bootstrap.kubernetes_endpoints import SKIP_MIRROR, EndpointsObjects
from pilothouse.machinery.objects import Object
from pilothouse.registry.storage import StorageFactory

PORTS = [{"name": "https", "port": 6443, "protocol": "TCP"}]
OTHER_PORTS = [{"name": "https", "port": 1, "protocol": "TCP"}]


def endpoints(*addresses: str, ports: list[Object] = PORTS, labelled: bool = True) -> Object:
    labels = {"labels": {SKIP_MIRROR: "true"}} if labelled else {}
    subset = {"addresses": [{"ip": ip} for ip in addresses], "ports": ports}
    return {"metadata": {"name": "kubernetes", **labels}, "subsets": [subset]}


@pytest.mark.parametrize(
    ("current", "count", "expected"),
    [
        ({"metadata": {"name": "kubernetes"}}, 1, endpoints("5")),
        (endpoints("5"), 1, None),
        (endpoints("5", labelled=False), 1, endpoints("5")),
        (endpoints("5", ports=OTHER_PORTS), 1, None),
        (endpoints("1", "9"), 3, endpoints("1", "5", "9")),
        (endpoints("1", "9"), 2, endpoints("1", "5")),
        (endpoints("1", "3"), 2, endpoints("3", "5")),
        (endpoints("1", "5", "9"), 1, endpoints("5")),
        ({**endpoints("1"), "subsets": endpoints("1")["subsets"] * 2}, 9, endpoints("5")),
    ],
)
def test_an_address_takes_its_place_among_a_number(current: Object, count: int, expected: Object | None) -> None:
    assert with_address(current, "5", PORTS, count) == expected


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (endpoints("1", "5"), endpoints("1")),
        (endpoints("5"), {"metadata": endpoints()["metadata"]}),
        (endpoints("1"), None),
        ({"metadata": {"name": "kubernetes"}}, None),
    ],
)
def test_an_address_is_taken_away(current: Object, expected: Object | None) -> None:
    assert without_address(current, "5") == expected


async def test_servers_come_and_go(storage: StorageFactory) -> None:
    stored, slices = storage.store("", "v1", "endpoints"), storage.store("discovery.k8s.io", "v1", "endpointslices")
    objects = EndpointsObjects(stored, slices)
    first, second = (CountedEndpoints(objects, f"192.0.2.{number}", 6443, 2) for number in (1, 2))

    async def addresses() -> list[str]:
        piece = await existing(slices, "default", "kubernetes")
        assert piece is not None
        return [ip for member in piece["endpoints"] or () for ip in member["addresses"]]

    await first.withdraw_stale()
    assert await existing(stored, "default", "kubernetes") is None
    await second.reconcile()
    await first.reconcile()
    assert await addresses() == ["192.0.2.1", "192.0.2.2"]
    await CountedEndpoints(objects, "192.0.2.3", 6443, 2).reconcile()
    assert await addresses() == ["192.0.2.2", "192.0.2.3"]
    await second.withdraw()
    await second.reconcile()
    assert await addresses() == ["192.0.2.3"]
