"""Clients of a server of each kind, on one etcd that one of them compacts: one log explains all that they saw."""

import os
import random
import sys
import threading
import time
from pathlib import Path

import pytest

from pilothouse.credentials.pki import Pki
from pilothouse.testing.etcd_process import EtcdCluster
from pilothouse.testing.model.clients import Lister, Watching, Writer
from pilothouse.testing.model.history import DONE, History
from pilothouse.testing.model.model import violations
from pilothouse.testing.model.runner import await_sight, begin, tls_of
from pilothouse.testing.waiting import until

sys.path.insert(0, str(Path(__file__).parent))
from servers import KUBE_APISERVER, PILOTHOUSE, ApiServer

pytestmark = pytest.mark.skipif(
    not (KUBE_APISERVER and os.environ.get("ETCD")), reason="KUBE_APISERVER and ETCD name no binaries"
)
WRITES = 500
SECONDS = 5.0


def run_clients(servers, tls):
    """What happened to writers, listers and watches that each ask now this server and now that."""
    history, over, done, choice = History(), threading.Event(), threading.Event(), random.Random(1)
    shared = (servers, tls, history)
    start = begin(servers[0], tls)
    watchers = [Watching(*shared, done, choice.randrange(1 << 30), after=start) for _ in range(4)]
    others = [Lister(*shared, over, choice.randrange(1 << 30)) for _ in range(2)]
    others += [Writer(*shared, over, choice.randrange(1 << 30), name=f"w{number}", objects=8) for number in range(4)]
    for client in (*watchers, *others):
        client.start()
    ends = time.monotonic() + SECONDS
    until(lambda: time.monotonic() > ends and sum(write.outcome == DONE for write in history.written) > WRITES)
    over.set()
    for client in others:
        client.join()
    await_sight(watchers, max(write.version for write in history.written))
    done.set()
    for client in watchers:
        client.join()
    assert all(client.failure is None for client in (*watchers, *others))
    return history


@pytest.mark.parametrize("compacting", [KUBE_APISERVER, PILOTHOUSE])
def test_one_log_explains_what_clients_of_both_saw(tmp_path, compacting):
    flags = [f"--client-ca-file={Pki(tmp_path / 'pki').ca_cert}"]

    def interval(binary):
        return f"--etcd-compaction-interval={'1s' if binary == compacting else '0'}"

    with (
        EtcdCluster() as etcd,
        ApiServer(KUBE_APISERVER, tmp_path, etcd.urls, *flags, interval(KUBE_APISERVER)) as theirs,
        ApiServer(PILOTHOUSE, tmp_path, etcd.urls, *flags, interval(PILOTHOUSE), "--hostname-override=another") as ours,
    ):
        history = run_clients([("127.0.0.1", server.port) for server in (theirs, ours)], tls_of(tmp_path))
    assert violations(history) == []
    assert history.listed and all(watched.events for watched in history.watched)
