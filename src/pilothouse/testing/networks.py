"""Hosts of a network of their own on this machine, to be cut off from each other with real packets: for root on Linux.

Each host is a network namespace behind a bridge, which this process reaches too. A way from one host to another is cut
by giving the first a wrong hardware address for the second: what it sends vanishes without a word, as on a broken line,
and what comes the other way still arrives. A host whose line is down hears nothing and is not heard.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import cache

_NOBODY = "02:00:00:00:ff:ff"
_THIS = 1
"""This process's number on the bridge; hosts have those above."""


def _ip(*words: str) -> None:
    """Do it; raises OSError with what the tool says."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@cache
def why_not() -> str:
    """Why this machine does not let us have such networks; empty if it does."""
    if shutil.which("ip") is None:
        return "there is no ip command (iproute2)"
    try:
        with Network(1):
            return ""
    except OSError as error:
        return f"network namespaces cannot be made: {error}"


class Host:
    """One host; its processes are started by `command`."""

    def __init__(self, network: str, number: int) -> None:
        self.number = number
        self.address = _address(number)
        self.name = f"{network}h{number}"
        self.line = f"{network}v{number}"
        """The bridge's end of its line."""

    def command(self, words: Sequence[str]) -> list[str]:
        """The words that run a program on this host, in a process that becomes it."""
        return ["ip", "netns", "exec", self.name, *words]


class Network:
    """Hosts that reach each other, and are reached from here; a context manager."""

    def __init__(self, size: int) -> None:
        self._bridge = f"ph{os.getpid() % 100_000}{random.randrange(36**2):03x}"[:11]
        self.hosts = [Host(self._bridge, _THIS + 1 + number) for number in range(size)]
        self._stack = ExitStack()

    def __enter__(self) -> Network:
        try:
            self._make()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _make(self) -> None:
        _ip("link", "add", self._bridge, "address", _hardware(_THIS), "type", "bridge")
        self._stack.callback(_ip, "link", "delete", self._bridge)
        _ip("address", "add", f"{_address(_THIS)}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for host in self.hosts:
            _ip("netns", "add", host.name)
            self._stack.callback(_remove, host)
            inside = ("netns", host.name, "name", "eth0", "address", _hardware(host.number))
            _ip("link", "add", host.line, "type", "veth", "peer", *inside)
            _ip("link", "set", host.line, "master", self._bridge, "up")
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip("-n", host.name, "link", "set", "lo", "up")
            _ip("-n", host.name, "link", "set", "eth0", "up")
        self.mend()

    def cut(self, one: Host, *others: Host) -> None:
        """Let nothing pass between a host and others, either way."""
        for other in others:
            self.cut_way(one, other)
            self.cut_way(other, one)

    def cut_way(self, source: Host, target: Host) -> None:
        """Let nothing that the one host sends arrive at the other; the other way stays open."""
        _direct(source, target, _NOBODY)

    def pull(self, hosts: Iterable[Host]) -> None:
        """Take the lines of hosts down: nothing passes between them and anybody, this process included."""
        for host in hosts:
            _ip("link", "set", host.line, "down")

    def mend(self) -> None:
        """Have everybody reach everybody again."""
        for host in self.hosts:
            _ip("link", "set", host.line, "up")
            _ip("neigh", "replace", host.address, "lladdr", _hardware(host.number), "nud", "permanent", *self._here)
            own = ("lladdr", _hardware(_THIS), "nud", "permanent", "dev", "eth0")
            _ip("-n", host.name, "neigh", "replace", _address(_THIS), *own)
            for other in self.hosts:
                if other is not host:
                    _direct(host, other, _hardware(other.number))

    @property
    def _here(self) -> tuple[str, str]:
        return ("dev", self._bridge)


def _direct(source: Host, target: Host, hardware: str) -> None:
    way = ("lladdr", hardware, "nud", "permanent", "dev", "eth0")
    _ip("-n", source.name, "neigh", "replace", target.address, *way)


def _remove(host: Host) -> None:
    with suppress(OSError):
        _ip("link", "delete", host.line)
    _ip("netns", "delete", host.name)


def _address(number: int) -> str:
    """Of the block that is kept for measurements between networks; each process has another part of it."""
    return f"198.{18 + os.getpid() // 256 % 2}.{os.getpid() % 256}.{number}"


def _hardware(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"
