"""Blocks of addresses and ranges of ports, and the order in which they are handed out.

Both are split in two bands. What users ask for by number tends to be low, so random choices are made from the upper
band first and from the lower one only when that is full:

    10.0.0.0/16   │ .0.0 │ 256 addresses, for choices by hand │ the rest, for random choices │ .255.255 │
    30000-32767          │ 86 ports                           │ the rest                     │
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from pilothouse.machinery.addresses import Address, parse_cidr

FULL: Final = "range is full"
IPV6_SHORTEST_PREFIX: Final = 64
_MAX_SIZE: Final = (1 << 64) - 1


def _static_band(size: int, step: int, most: int) -> int:
    """min(max(16, size/step), most); nothing for ranges too small to be split."""
    return 0 if size <= 16 else min(max(16, size // step), most)


def _scan(first: int, size: int, rng: Random) -> Iterator[int]:
    """All numbers of a band once, from a random one on."""
    if size > 0:
        start = rng.randrange(size)
        for step in range(size):
            yield first + (start + step) % size


@dataclass(frozen=True, slots=True)
class AddressBlock:
    """The addresses of a block that services may have: not the network's own nor, in IPv4, the broadcast address."""

    text: str
    family: str
    network: int
    first: int
    last: int
    bits: int
    band: int

    @classmethod
    def parse(cls, text: str) -> AddressBlock | None:
        """Read a block; None for one that addresses cannot be taken from."""
        block = parse_cidr(text)
        if block is None:
            return None
        bits, network = block.address.bits, block.network.number
        if bits == 128 and block.prefix < IPV6_SHORTEST_PREFIX:
            return None
        size = 1 << (bits - block.prefix)
        last = network + size - (2 if bits == 32 else 1)
        band = _static_band(min(size, (1 << 63) - 1), 16, 256)
        return cls(str(block), "IPv4" if bits == 32 else "IPv6", network, network + 1, last, bits, band)

    def contains(self, address: Address) -> bool:
        return address.is_ipv4 == (self.bits == 32) and self.first <= self._number(address) <= self.last

    def count(self, numbers: Sequence[int]) -> int:
        """How many of these addresses of its family, in order, are of this block."""
        return bisect_right(numbers, self.last) - bisect_left(numbers, self.first)

    @property
    def size(self) -> int:
        """How many addresses there are to hand out."""
        return max(self.last - self.first + 1, 0)

    def _number(self, address: Address) -> int:
        return address.number & 0xFFFFFFFF if self.bits == 32 else address.number

    def candidates(self, rng: Random) -> Iterator[str]:
        """Addresses in the order they should be tried."""
        size = min(self.size, _MAX_SIZE)
        for number in _scan(self.first + self.band, size - self.band, rng):
            yield self.show(number)
        for number in _scan(self.first, min(self.band, size), rng):
            yield self.show(number)

    def show(self, number: int) -> str:
        return str(Address(number, self.bits, False))

    @property
    def network_address(self) -> str:
        return self.show(self.network)


class RangeError(ValueError):
    """Why a port cannot be had, as clients are told."""


@dataclass(frozen=True, slots=True)
class PortRange:
    """A range of ports."""

    first: int
    size: int

    @classmethod
    def parse(cls, text: str) -> PortRange:
        """Read ``30000-32767``, as a stored range is written."""
        first, _, last = text.partition("-")
        return cls(int(first), int(last) - int(first) + 1)

    def __str__(self) -> str:
        return f"{self.first}-{self.first + self.size - 1}"

    def __contains__(self, port: int) -> bool:
        return self.first <= port < self.first + self.size


class PortSet:
    """The allocated ports of a range, as a bitmap that grows from its lowest port.

    ``taken`` and ``refused`` say how often this was so since the set was made: by whether a port was chosen for the
    asker or named.
    """

    __slots__ = ("bits", "range", "refused", "rng", "taken")

    def __init__(self, range_: PortRange, bits: int = 0, rng: Random | None = None) -> None:
        self.range = range_
        self.bits = bits
        self.rng = rng or Random()
        self.taken: Counter[bool] = Counter()
        self.refused: Counter[bool] = Counter()

    def copy(self) -> PortSet:
        return PortSet(self.range, self.bits, self.rng)

    def __contains__(self, port: int) -> bool:
        return port in self.range and bool(self.bits >> (port - self.range.first) & 1)

    def __iter__(self) -> Iterator[int]:
        bits, port = self.bits, self.range.first
        while bits:
            if bits & 1:
                yield port
            bits >>= 1
            port += 1

    def allocate(self, port: int) -> None:
        """Take this port. Raises ``RangeError`` when that cannot be."""
        if port not in self.range:
            self.refused[False] += 1
            raise RangeError(f"provided port is not in the valid range. The range of valid ports is {self.range}")
        if port in self:
            self.refused[False] += 1
            raise RangeError("provided port is already allocated")
        self.taken[False] += 1
        self.bits |= 1 << (port - self.range.first)

    def allocate_next(self) -> int:
        """Take any free port. Raises ``RangeError`` when there is none."""
        size = self.range.size
        band = _static_band(size, 32, 128)
        offset = self._free(band, size - band)
        if offset is None:
            offset = self._free(0, band)
        if offset is None:
            self.refused[True] += 1
            raise RangeError(FULL)
        self.bits |= 1 << offset
        self.taken[True] += 1
        return self.range.first + offset

    def _free(self, first: int, size: int) -> int | None:
        """The first free place of a band from a random one on, and then from the beginning."""
        free = ~(self.bits >> first) & ((1 << size) - 1)
        if not free:
            return None
        start = self.rng.randrange(size)
        free = free >> start << start or free
        return first + (free & -free).bit_length() - 1

    def release(self, port: int) -> None:
        """Give a port back; one that is not allocated does not matter."""
        if port in self:
            self.bits ^= 1 << (port - self.range.first)


class DryPortSet(PortSet):
    """Ports for a dry run: nothing is kept, and chosen ports are only examples of what could be.

    So there is no end to them, and a service may ask for a hundred thousand.
    """

    __slots__ = ("_chosen", "_highest", "_taken")
    _GUESS: Final = 32768

    def __init__(self, taken: PortSet) -> None:
        super().__init__(taken.range, taken.bits, taken.rng)
        self._taken = taken.copy()
        self._chosen: set[int] = set()
        self._highest = self._GUESS

    def allocate(self, port: int) -> None:
        if port in self._taken or port in self._chosen:
            raise RangeError("provided port is already allocated")
        self._choose(port)

    def allocate_next(self) -> int:
        port = self._highest + 1
        self._choose(port)
        return port

    def _choose(self, port: int) -> None:
        self._highest = max(port, self._highest) if self._chosen else port
        self._chosen.add(port)

    def release(self, port: int) -> None:
        """Nothing is kept, so nothing is given back."""
