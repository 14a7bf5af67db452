"""Faults of the network between the members of an etcd and the servers on it: lines that are cut, for a while."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pilothouse.testing.etcd_process import EtcdCluster
from pilothouse.testing.networks import Host, Network


class Cuts:
    """Cuts the network in one of many ways, mends it again, and waits until etcd is whole."""

    def __init__(
        self, network: Network, etcd: EtcdCluster, servers: Sequence[Host], choice: random.Random, longest: float
    ) -> None:
        self._network, self._etcd, self._servers = network, etcd, servers
        self._choice, self._longest = choice, longest
        self._members = [member.host for member in etcd.members if member.host is not None]

    def all(self) -> list[Callable[[], None]]:
        """Every way."""
        return [
            self.cut_member_from_peers,
            self.cut_leader_from_peers,
            self.cut_server_from_member,
            self.cut_server_from_all,
            self.cut_one_way,
            self.cut_answers,
            self.pull_member,
            self.pull_all,
        ]

    def cut_member_from_peers(self) -> None:
        """A member alone, which servers still reach."""
        self._isolate(self._choice.choice(self._members))

    def cut_leader_from_peers(self) -> None:
        """The same of the one that the others follow."""
        leader = self._leader()
        if leader is not None:
            self._isolate(leader)

    def cut_server_from_member(self) -> None:
        """A server that does not reach one of the members."""
        with self._while_cut():
            self._network.cut(self._choice.choice(self._servers), self._choice.choice(self._members))

    def cut_server_from_all(self) -> None:
        """A server that reaches none."""
        with self._while_cut():
            self._network.cut(self._choice.choice(self._servers), *self._members)

    def cut_one_way(self) -> None:
        """Nothing that somebody sends arrives at somebody else, who is still heard."""
        with self._while_cut():
            source, target = self._choice.sample(self._network.hosts, 2)
            self._network.cut_way(source, target)

    def cut_answers(self) -> None:
        """A server whose questions arrive, and whose answers do not."""
        with self._while_cut():
            server = self._choice.choice(self._servers)
            for member in self._members:
                self._network.cut_way(member, server)

    def pull_member(self) -> None:
        """A member that nobody reaches."""
        with self._while_cut():
            self._network.pull([self._choice.choice(self._members)])

    def pull_all(self) -> None:
        """No member reaches another, nor is reached by a server."""
        with self._while_cut():
            self._network.pull(self._members)

    def _isolate(self, member: Host) -> None:
        with self._while_cut():
            self._network.cut(member, *(other for other in self._members if other is not member))

    def _leader(self) -> Host | None:
        try:
            return self._etcd.leader().host
        except OSError:
            return None

    @contextmanager
    def _while_cut(self) -> Iterator[None]:
        yield
        time.sleep(self._choice.uniform(0.05, 1.0) * self._longest)
        self._network.mend()
        for member in self._etcd.members:
            member.wait_ready()
