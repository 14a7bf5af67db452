"""What is counted about cluster addresses and node ports: what is taken, what is refused, what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from socket import AF_INET6, inet_aton, inet_pton
from typing import Final, Protocol

from pilothouse.controlplane.allocation.ranges import AddressBlock, PortSet
from pilothouse.machinery.metrics import Counter, Gauge, Histogram, Instrument

STATIC: Final = "static"
DYNAMIC: Final = "dynamic"
_MOST: Final = (1 << 63) - 1


class TakenAddresses(Protocol):
    """The IPAddresses that allocation made."""

    @property
    def revision(self) -> int:
        """Of the last change to any of them."""

    def names(self) -> Iterable[str]:
        """Their names, which are canonical addresses."""


class _BlockGauge(Gauge):
    """Addresses of each block, counted when they are asked for."""

    def __init__(self, name: str, words: str, count: Callable[[], Iterable[tuple[str, int]]]) -> None:
        super().__init__(name, words, ("cidr",), joined="most")
        self._count = count

    def lines(self, native: bool = False) -> Iterable[str]:
        for block, number in self._count():
            self.labelled(block).value = number
        return super().lines(native)


class AllocationMetrics:
    """The instruments of one server. ``addresses`` are the IPAddresses there are."""

    def __init__(self, addresses: TakenAddresses | None = None) -> None:
        self._addresses = addresses
        self._blocks: dict[str, AddressBlock] = {}
        self._counted: tuple[object, list[tuple[str, int]]] = None, []
        ips, ports = "kube_apiserver_clusterip_allocator", "kube_apiserver_nodeport_allocator"
        by_block = ("cidr", "scope")
        self._ips = Counter(f"{ips}_allocation_total", "[ALPHA] Cluster addresses taken.", by_block)
        self._ip_errors = Counter(f"{ips}_allocation_errors_total", "[ALPHA] Cluster addresses refused.", by_block)
        self._ip_seconds = Histogram(
            f"{ips}_allocation_duration_seconds", "[ALPHA] Seconds to take a cluster address.", ("cidr",)
        )
        self._ports = Counter(f"{ports}_allocation_total", "[ALPHA] Node ports taken.", ("scope",))
        self._port_errors = Counter(f"{ports}_allocation_errors_total", "[ALPHA] Node ports refused.", ("scope",))
        self._ports_taken = Gauge(f"{ports}_allocated_ports", "[ALPHA] Node ports in use.", joined="most")
        self._ports_free = Gauge(f"{ports}_available_ports", "[ALPHA] Node ports left.", joined="most")
        repair = "apiserver_nodeport_repair"
        self._errors = Counter(f"{repair}_port_errors_total", "[ALPHA] Errors that repair found.", ("type",))
        self._failures = Counter(f"{repair}_reconcile_errors_total", "[ALPHA] Rounds of repair that failed.")
        self._all: tuple[Instrument, ...] = (
            _BlockGauge(f"{ips}_allocated_ips", "[ALPHA] Cluster addresses in use.", self._count_taken),
            _BlockGauge(f"{ips}_available_ips", "[ALPHA] Cluster addresses left.", self._count_free),
            self._ips,
            self._ip_errors,
            self._ip_seconds,
            self._ports_taken,
            self._ports_free,
            self._ports,
            self._port_errors,
            self._errors,
            self._failures,
        )

    def took_address(self, block: AddressBlock, scope: str, seconds: float) -> None:
        """An address was taken from a block."""
        self._blocks[block.text] = block
        self._ips.labelled(block.text, scope).value += 1
        self._ip_seconds.labelled(block.text).observe(seconds)

    def refused_address(self, block: AddressBlock, scope: str) -> None:
        """An address of a block was not to be had, or none at all."""
        self._ip_errors.labelled(block.text, scope).value += 1

    def changed_ports(self, ports: PortSet) -> None:
        """Ports were taken or given back."""
        taken = ports.bits.bit_count()
        self._ports_taken.labelled().value = taken
        self._ports_free.labelled().value = ports.range.size - taken

    def asked_ports(self, ports: PortSet) -> None:
        """Ports were asked for, with or without success."""
        for counter, numbers in ((self._ports, ports.taken), (self._port_errors, ports.refused)):
            for chosen, number in numbers.items():
                counter.labelled(DYNAMIC if chosen else STATIC).value += number

    def found_error(self, kind: str) -> None:
        """Repair found a port that is not as it should be."""
        self._errors.labelled(kind).value += 1

    def failed_repair(self) -> None:
        """A round of repair came to nothing."""
        self._failures.labelled().value += 1

    def _count_taken(self) -> list[tuple[str, int]]:
        if not self._blocks or self._addresses is None:
            return []
        state = self._addresses.revision, tuple(self._blocks)
        if self._counted[0] != state:
            self._counted = state, _count_by_block(self._addresses.names(), self._blocks.values())
        return self._counted[1]

    def _count_free(self) -> list[tuple[str, int]]:
        return [(text, max(min(self._blocks[text].size, _MOST) - taken, 0)) for text, taken in self._count_taken()]

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._all


def _count_by_block(names: Iterable[str], blocks: Iterable[AddressBlock]) -> list[tuple[str, int]]:
    """How many addresses each block has. There may be tens of thousands, and somebody waits for the page."""
    of_v4: list[int] = []
    of_v6: list[int] = []
    for name in names:
        try:
            if ":" in name:
                of_v6.append(int.from_bytes(inet_pton(AF_INET6, name), "big"))
            else:
                of_v4.append(int.from_bytes(inet_aton(name), "big"))
        except OSError:  # whatever somebody wrote there past the API
            continue
    of_v4.sort()
    of_v6.sort()
    return [(block.text, block.count(of_v4 if block.family == "IPv4" else of_v6)) for block in blocks]
