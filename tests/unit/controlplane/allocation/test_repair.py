"""What is wrong between services and what is allocated, and how it is righted."""

from __future__ import annotations

from typing import Any

from pilothouse.controlplane.allocation.cluster_ips import make_address
from pilothouse.controlplane.allocation.ranges import AddressBlock, PortRange, PortSet
from pilothouse.controlplane.allocation.repair import claimed_ports, repair_addresses, repair_ports
from pilothouse.machinery.times import parse_time

NOW = parse_time("2026-01-02T03:04:05Z")
OLD = "2026-01-01T00:00:00Z"
YOUNG = "2026-01-02T03:04:00Z"
BLOCK = AddressBlock.parse("10.0.0.0/24")
assert BLOCK is not None


def made(name: str, ip: str, **spec: Any) -> dict[str, Any]:
    spec = {"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], **spec}
    return {"metadata": {"name": name, "namespace": "ns", "creationTimestamp": OLD}, "spec": spec}


def held(ip: str, service: dict[str, Any], created: str = OLD) -> dict[str, Any]:
    obj = make_address(ip, service)
    obj["metadata"]["creationTimestamp"] = created
    return obj


def repair(services: list[dict[str, Any]], addresses: list[dict[str, Any]]) -> Any:
    return repair_addresses(services, addresses, [BLOCK], NOW)


def reasons(found: Any) -> list[str]:
    return [note.reason for note in found.notes]


def test_all_is_well() -> None:
    service = made("a", "10.0.0.1")
    found = repair([service, made("b", "None")], [held("10.0.0.1", service)])
    assert (found.delete, found.create, found.notes) == ([], [], [])


def test_missing_addresses_are_made() -> None:
    found = repair([made("a", "10.0.0.1")], [])
    assert [obj["metadata"]["name"] for obj in found.create] == ["10.0.0.1"]
    assert found.notes[0].message == "Cluster IP [IPv4]: 10.0.0.1 is not allocated; repairing"


def test_foreign_addresses_are_reported() -> None:
    found = repair([made("a", "10.9.0.1"), made("b", "nonsense")], [])
    assert reasons(found) == ["ClusterIPOutOfRange", "ClusterIPNotValid"]
    assert found.create == []


def test_an_address_held_for_a_service_that_has_gone_is_taken_over() -> None:
    found = repair([made("a", "10.0.0.1")], [held("10.0.0.1", made("gone", "10.0.0.1"))])
    assert found.delete == ["10.0.0.1"]
    assert found.create[0]["spec"]["parentRef"]["name"] == "a"


def test_two_services_with_one_address() -> None:
    first, second = made("a", "10.0.0.1"), made("b", "10.0.0.1")
    found = repair([first, second], [held("10.0.0.1", first)])
    assert reasons(found) == ["ClusterIPAlreadyAllocated"]
    assert (found.delete, found.create) == ([], [])


def test_leaks_are_cleaned_up_in_time() -> None:
    gone = made("gone", "10.0.0.7")
    assert repair([], [held("10.0.0.7", gone)]).delete == ["10.0.0.7"]
    young = repair([], [held("10.0.0.7", gone, YOUNG)])
    assert (young.delete, young.again_in) == ([], {"10.0.0.7": 55})
    other = made("gone", "10.0.0.8")
    found = repair([other], [held("10.0.0.7", gone), held("10.0.0.8", other)])
    assert (found.delete, reasons(found)) == (["10.0.0.7"], ["IPAddressWrongReference"])


def test_what_others_manage_is_left_alone() -> None:
    obj = held("10.0.0.7", made("gone", "10.0.0.7"))
    obj["metadata"]["labels"] = {}
    assert repair([], [obj]).delete == []


RANGE = PortRange.parse("30000-30009")


def ports(*numbers: int) -> PortSet:
    made_set = PortSet(RANGE)
    for number in numbers:
        made_set.allocate(number)
    return made_set


def exposed(name: str, *numbers: int) -> dict[str, Any]:
    listed = [{"port": number, "protocol": "TCP", "nodePort": number} for number in numbers]
    return made(name, "10.0.0.1", ports=listed)


def test_ports_of_services_are_allocated() -> None:
    found = repair_ports(RANGE, ports(30001), claimed_ports([exposed("a", 30001, 30002)]), {})
    assert set(found.ports) == {30001, 30002}
    assert [note.message for note in found.notes] == ["Port 30002 is not allocated; repairing"]


def test_doubles_and_strays() -> None:
    claims = claimed_ports([exposed("a", 30001), exposed("b", 30001, 80)])
    found = repair_ports(RANGE, ports(30001), claims, {})
    assert [note.reason for note in found.notes] == ["PortAlreadyAllocated", "PortOutOfRange"]


def test_leaked_ports_are_freed_after_three_rounds() -> None:
    stored, leaks = ports(30001), {}
    rounds = []
    for _ in range(4):
        found = repair_ports(RANGE, stored, [], leaks)
        stored, leaks = found.ports, found.leaks
        rounds.append(set(stored))
    assert rounds == [{30001}, {30001}, set(), set()]
    assert leaks == {}


def test_one_port_for_two_protocols_is_one_port() -> None:
    service = exposed("a", 30001)
    service["spec"]["ports"].append({"port": 1, "protocol": "UDP", "nodePort": 30001})
    assert claimed_ports([service]) == [(service, 30001)]
