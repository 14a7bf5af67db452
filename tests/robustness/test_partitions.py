"""An etcd whose members and servers are hosts of their own: lines are cut, and packets vanish. Histories hold.

The hosts are network namespaces, which takes root; elsewhere these tests are left out, and `test_etcd_faults.py` and
`test_model.py` cut members off by other means.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pilothouse.credentials.pki import ensure_pki
from pilothouse.testing.etcd_process import EtcdCluster, find_etcd
from pilothouse.testing.model.history import DONE
from pilothouse.testing.model.runner import Plan, ServerProcess, check, tls_of
from pilothouse.testing.networks import Network, why_not
from pilothouse.testing.ports import free_port

PATIENCE_SECONDS = 120.0


@pytest.fixture(autouse=True)
def possible() -> None:
    reason = "there is no etcd" if find_etcd() is None else why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def network() -> Iterator[Network]:
    with Network(4) as made:
        yield made


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def hold(folder: Path, plan: Plan) -> None:
    history, wrong = check(folder, plan)
    assert not wrong
    assert sum(write.outcome == DONE for write in history.written) > 50
    assert history.listed
    assert any(watched.events for watched in history.watched)


def test_lines_that_are_cut_for_a_moment(tmp_path: Path) -> None:
    hold(
        tmp_path / "data",
        Plan(seconds=2.5, writes=51, servers=2, members=3, every=0.5, seed=11, networked=True, longest=1.0),
    )


@pytest.mark.soak
@pytest.mark.parametrize(("longest", "seed"), [(3.0, 2), (25.0, 5)])
def test_lines_that_are_cut_for_long(tmp_path: Path, longest: float, seed: int) -> None:
    plan = Plan(seconds=150, servers=2, members=3, every=2, seed=seed, networked=True, longest=longest)
    hold(tmp_path / "data", plan)


def test_a_server_that_reaches_no_member_says_so_until_it_does(tmp_path: Path, network: Network) -> None:
    *members, host = network.hosts
    data = tmp_path / "data"
    ensure_pki(data, dns_names=["localhost"], ip_addresses=[host.address, "127.0.0.1"])
    tls = tls_of(data)
    with EtcdCluster(3, hosts=members) as etcd:
        server = ServerProcess(data, free_port(), f"--etcd-servers={','.join(etcd.urls)}", host=host)
        server.start()
        try:
            server.wait_ready(tls)
            network.cut(host, *members)
            until(lambda: "[-]etcd failed" in server.readiness(tls)[1])
            network.mend()
            server.wait_ready(tls)
            for member in members:  # what it asks arrives, and the answers do not
                network.cut_way(member, host)
            until(lambda: "[-]etcd failed" in server.readiness(tls)[1])
            network.mend()
            server.wait_ready(tls)
        finally:
            server.kill()
