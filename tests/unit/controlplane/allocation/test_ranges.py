"""The order in which addresses and ports are handed out, and the bitmap in a real store."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.controlplane.allocation.node_ports import NodePorts, StoredLedger
from pilothouse.controlplane.allocation.ranges import AddressBlock, DryPortSet, PortRange, PortSet, RangeError
from pilothouse.machinery.addresses import parse_ip
from pilothouse.storage.backends.sqlite import SQLiteBackend


def block(text: str) -> AddressBlock:
    made = AddressBlock.parse(text)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("text", "band", "size"),
    [("10.0.0.0/28", 0, 14), ("10.0.0.0/27", 16, 30), ("10.0.0.0/24", 16, 254), ("10.0.0.0/20", 256, 4094)],
)
def test_every_address_once_the_upper_band_first(text: str, band: int, size: int) -> None:
    given_block = block(text)
    found = list(given_block.candidates(Random(1)))
    assert len(found) == len(set(found)) == size
    low = {given_block.show(given_block.first + at) for at in range(band)}
    assert set(found[size - band :]) == low


def test_large_and_useless_blocks() -> None:
    assert len(set(islice(block("fd00::/64").candidates(Random(1)), 100))) == 100
    assert AddressBlock.parse("fd00::/63") is None
    assert AddressBlock.parse("nonsense") is None
    assert list(block("10.0.0.0/32").candidates(Random(1))) == []


@pytest.mark.parametrize(
    ("ip", "inside"),
    [("10.0.0.0", False), ("10.0.0.1", True), ("10.0.0.254", True), ("10.0.0.255", False), ("fd00::1", False)],
)
def test_neither_network_nor_broadcast(ip: str, inside: bool) -> None:
    address = parse_ip(ip)
    assert address is not None
    assert block("10.0.0.0/24").contains(address) is inside


def test_ports_by_hand_and_at_random() -> None:
    ports = PortSet(PortRange.parse("30000-30099"), rng=Random(1))
    chosen = [ports.allocate_next() for _ in range(84)]
    assert set(chosen) == set(range(30016, 30100))
    assert ports.allocate_next() < 30016
    ports.release(30050)
    ports.allocate(30050)
    with pytest.raises(RangeError, match="provided port is already allocated"):
        ports.allocate(30050)
    with pytest.raises(RangeError, match="The range of valid ports is 30000-30099"):
        ports.allocate(80)


@given(st.sets(st.integers(30000, 30099)))
def test_a_set_lists_what_was_taken(wanted: set[int]) -> None:
    ports = PortSet(PortRange.parse("30000-30099"))
    for port in wanted:
        ports.allocate(port)
    assert set(ports) == wanted
    for port in wanted:
        ports.release(port)
    assert ports.bits == 0


async def test_two_servers_on_one_store(tmp_path: Path) -> None:
    backend = SQLiteBackend(str(tmp_path / "store.db"))
    await backend.open()
    try:
        range_ = PortRange.parse("30000-32767")
        first, second = (NodePorts(range_, StoredLedger(backend)) for _ in range(2))
        await first.change(lambda ports: ports.allocate(30005))
        with pytest.raises(RangeError):
            await second.change(lambda ports: ports.allocate(30005))
        await second.change(lambda ports: ports.release(30005))
        await first.change(lambda ports: ports.allocate(30005))
        await second.change(lambda ports: ports.allocate(30006))
        assert set(await first.peek()) == {30005, 30006}
        narrower = NodePorts(PortRange.parse("30006-30010"), StoredLedger(backend))
        assert set(await narrower.peek()) == {30006}
    finally:
        await backend.close()


def test_a_dry_run_looks_at_no_port_twice() -> None:
    """There is no end to them: to find the highest of all for each took two minutes for 60,000."""
    ports = DryPortSet(PortSet(PortRange(30000, 2768)))
    ports.allocate(30010)
    assert [ports.allocate_next() for _ in range(3)] == [30011, 30012, 30013]
    ports.allocate(30005)
    assert ports.allocate_next() == 30014
    with pytest.raises(RangeError):
        ports.allocate(30012)
    assert DryPortSet(PortSet(PortRange(30000, 2768))).allocate_next() == 32769
    assert isinstance(ports._chosen, set)
