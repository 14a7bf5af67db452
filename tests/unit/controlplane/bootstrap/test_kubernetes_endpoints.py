import pytest

from pilothouse.controllers.own_objects import existing, remove, update
from pilothouse.controlplane.bootstrap.address_leases import AddressLeases
from pilothouse.controlplane.bootstrap.kubernetes_endpoints import (
    SKIP_MIRROR,
    EndpointsObjects,
    LeasedEndpoints,
    corrected,
    slice_of,
)
from pilothouse.machinery.objects import Object
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher

PORTS = [{"name": "https", "port": 6443, "protocol": "TCP"}]
OTHER_PORTS = [{"name": "https", "port": 1, "protocol": "TCP"}]


def endpoints(*addresses: str, ports: list[Object] = PORTS, labelled: bool = True) -> Object:
    labels = {"labels": {SKIP_MIRROR: "true"}} if labelled else {}
    subset = {"addresses": [{"ip": ip} for ip in addresses], "ports": ports}
    return {"metadata": {"name": "kubernetes", **labels}, "subsets": [subset]}


@pytest.mark.parametrize(
    ("current", "addresses", "check_ports"),
    [
        (endpoints("1.1.1.1"), ["1.1.1.1"], True),
        (endpoints("1.1.1.1", "2.2.2.2"), ["2.2.2.2", "1.1.1.1"], True),
        (endpoints("1.1.1.1", ports=OTHER_PORTS), ["1.1.1.1"], False),
    ],
)
def test_right_endpoints_are_left_alone(current: Object, addresses: list[str], check_ports: bool) -> None:
    assert corrected(current, addresses, PORTS, check_ports=check_ports) is None


@pytest.mark.parametrize(
    ("current", "addresses", "check_ports", "expected"),
    [
        ({"metadata": {"name": "kubernetes"}}, ["1.1.1.1"], False, endpoints("1.1.1.1")),
        (endpoints("1.1.1.1", labelled=False), ["1.1.1.1"], False, endpoints("1.1.1.1")),
        (endpoints("9.9.9.9"), ["2.2.2.2", "1.1.1.1"], False, endpoints("1.1.1.1", "2.2.2.2")),
        (endpoints("1.1.1.1", "1.1.1.1"), ["1.1.1.1", "2.2.2.2"], False, endpoints("1.1.1.1", "2.2.2.2")),
        (endpoints("1.1.1.1", ports=OTHER_PORTS), ["1.1.1.1"], True, endpoints("1.1.1.1")),
        (endpoints("9.9.9.9", ports=OTHER_PORTS), ["1.1.1.1"], False, endpoints("1.1.1.1", ports=OTHER_PORTS)),
        (
            {**endpoints("1.1.1.1"), "subsets": endpoints("1.1.1.1")["subsets"] * 2},
            ["1.1.1.1"],
            False,
            endpoints("1.1.1.1"),
        ),
    ],
)
def test_wrong_endpoints_are_put_right(
    current: Object, addresses: list[str], check_ports: bool, expected: Object
) -> None:
    assert corrected(current, addresses, PORTS, check_ports=check_ports) == expected


def test_without_addresses_no_subset_is_left() -> None:
    result = corrected(endpoints("1.1.1.1"), [], PORTS, check_ports=True)
    assert result is not None
    assert "subsets" not in result


@pytest.mark.parametrize(
    ("addresses", "family", "members"),
    [
        (["1.1.1.1", "2.2.2.2"], "IPv4", [["1.1.1.1"], ["2.2.2.2"]]),
        (["fd00::1"], "IPv6", [["fd00::1"]]),
        (["1.1.1.1", "fd00::1"], "IPv4", [["1.1.1.1"]]),
    ],
)
def test_a_slice_has_the_addresses_of_one_family(addresses: list[str], family: str, members: list[list[str]]) -> None:
    piece = slice_of(endpoints(*addresses))
    assert piece["addressType"] == family
    assert [member["addresses"] for member in piece["endpoints"]] == members
    assert piece["ports"] == PORTS


def test_a_slice_of_nothing_says_so() -> None:
    piece = slice_of({"metadata": {"name": "kubernetes"}})
    assert (piece["addressType"], piece["endpoints"], piece["ports"]) == ("IPv4", None, None)


class Cluster:
    """Several servers on one store."""

    def __init__(self, storage: StorageFactory, cacher: Cacher) -> None:
        self.endpoints = storage.store("", "v1", "endpoints")
        self.slices = storage.store("discovery.k8s.io", "v1", "endpointslices")
        self.leases = AddressLeases(
            cacher, "/registry/masterleases/", StorageFactory(cacher).codec("", "v1", "endpoints")
        )

    def server(self, address: str) -> LeasedEndpoints:
        return LeasedEndpoints(EndpointsObjects(self.endpoints, self.slices), self.leases, address, 6443)

    async def addresses(self) -> list[str]:
        """Those of the Endpoints; the slice must say the same."""
        stored = await existing(self.endpoints, "default", "kubernetes")
        piece = await existing(self.slices, "default", "kubernetes")
        assert stored is not None
        assert piece is not None
        found = [each["ip"] for subset in stored.get("subsets") or () for each in subset["addresses"]]
        assert [ip for member in piece["endpoints"] or () for ip in member["addresses"]] == found
        return found


async def test_servers_come_and_go(storage: StorageFactory, cacher: Cacher) -> None:
    cluster = Cluster(storage, cacher)
    first, second = cluster.server("192.0.2.1"), cluster.server("192.0.2.2")
    await second.reconcile()
    assert await cluster.addresses() == ["192.0.2.2"]
    await first.reconcile()
    assert await cluster.addresses() == ["192.0.2.1", "192.0.2.2"]
    await second.withdraw()
    assert await cluster.addresses() == ["192.0.2.1"]
    await second.reconcile()
    assert await cluster.addresses() == ["192.0.2.1"]
    await first.withdraw()
    assert await cluster.addresses() == []


async def test_the_address_of_a_server_that_died_goes_with_its_lease(storage: StorageFactory, cacher: Cacher) -> None:
    cluster = Cluster(storage, cacher)
    alive, dead = cluster.server("192.0.2.1"), cluster.server("192.0.2.2")
    await alive.reconcile()
    await dead.reconcile()
    await cluster.leases.remove("192.0.2.2")  # what the store does when a lease has expired
    await alive.reconcile()
    assert await cluster.addresses() == ["192.0.2.1"]


async def test_a_server_that_starts_again_first_withdraws_what_it_left(storage: StorageFactory, cacher: Cacher) -> None:
    cluster = Cluster(storage, cacher)
    await cluster.server("192.0.2.1").reconcile()
    await cluster.server("192.0.2.2").reconcile()
    await cluster.server("192.0.2.2").withdraw_stale()
    assert await cluster.addresses() == ["192.0.2.1"]
    # The only address stays until there is another one: clients had better try it than nothing.
    await cluster.server("192.0.2.1").withdraw_stale()
    assert await cluster.addresses() == ["192.0.2.1"]


async def test_what_others_break_is_mended(storage: StorageFactory, cacher: Cacher) -> None:
    cluster = Cluster(storage, cacher)
    server = cluster.server("192.0.2.1")
    await server.reconcile()
    await remove(cluster.slices, "default", "kubernetes")
    await server.reconcile()
    assert await cluster.addresses() == ["192.0.2.1"]
    await remove(cluster.endpoints, "default", "kubernetes")
    await server.reconcile()
    assert await cluster.addresses() == ["192.0.2.1"]
    wrong = [{"addresses": ["192.0.2.77"], "conditions": {"ready": True}}]
    await update(cluster.slices, "default", "kubernetes", lambda obj: {**obj, "endpoints": wrong})
    await server.reconcile()
    assert await cluster.addresses() == ["192.0.2.1"]
