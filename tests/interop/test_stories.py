"""The same stories told to our controllers and scheduler and to kube-controller-manager and kube-scheduler.

Runs where KUBE_CONTROLLER_MANAGER and KUBE_SCHEDULER name binaries (`go build ./cmd/kube-controller-manager
./cmd/kube-scheduler`). Both clusters have our API server and our simulated nodes; what is left of a story is the same.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from servers import PILOTHOUSE, ApiServer
from stories import STORIES, Teller, events, remains

from pilothouse.credentials.pki import Pki

CONTROLLER_MANAGER, SCHEDULER = (os.environ.get(name, "") for name in ("KUBE_CONTROLLER_MANAGER", "KUBE_SCHEDULER"))
pytestmark = pytest.mark.skipif(not (CONTROLLER_MANAGER and SCHEDULER), reason="there are no binaries")


@contextlib.contextmanager
def components(server):
    """kube-controller-manager and kube-scheduler, on a server."""
    folder, port = server.folder, server.port
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": {"token": "admintoken"}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    pki = Pki(folder / "pki")
    common = [f"--kubeconfig={folder}/kubeconfig", "--leader-elect=false", "--secure-port=0", "--kube-api-qps=200"]
    keys = [f"--service-account-private-key-file={pki.service_account_key}", f"--root-ca-file={pki.ca_cert}"]
    own = ["--use-service-account-credentials=true", "--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16"]
    running = []
    try:
        for binary, words in ((CONTROLLER_MANAGER, [*keys, *own]), (SCHEDULER, [])):
            with (folder / f"{Path(binary).name}.log").open("wb") as log:
                running.append(subprocess.Popen([binary, *common, *words], stdout=log, stderr=log))
        yield
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(30)


def helped(server, by_components):
    return components(server) if by_components else contextlib.nullcontext()


def tell_all(server):
    def tell(story):
        teller = Teller(server, story.__name__.replace("_", "-"))
        story(teller)
        return story.__name__, (remains(teller), events(teller))

    with ThreadPoolExecutor(3) as pool:
        return dict(pool.map(tell, STORIES))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is left of each story in both clusters."""
    found = []
    for name, flags in (
        ("theirs", ["--controllers=-*", "--scheduler=false"]),
        ("ours", ["--controllers=*", "--scheduler=true"]),
    ):
        folder = tmp_path_factory.mktemp(name)
        common = ["--simulate-nodes=2", f"--root-ca-file={Pki(folder / 'pki').ca_cert}"]
        with ApiServer(PILOTHOUSE, folder, [], *common, *flags) as server, helped(server, name == "theirs"):
            found.append(tell_all(server))
    return found


@pytest.mark.parametrize("story", [story.__name__ for story in STORIES])
def test_the_same_is_left(told, story):
    theirs, ours = (each[story][0] for each in told)
    assert ours.keys() == theirs.keys()
    for key in theirs:
        assert ours[key] == theirs[key], key


@pytest.mark.parametrize("story", [story.__name__ for story in STORIES])
def test_the_same_is_told(told, story):
    theirs, ours = (each[story][1] for each in told)
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("story", [story.__name__ for story in STORIES])
def test_each_component_tells_of_an_object_in_the_same_order(told, story):
    theirs, ours = (by_teller(each[story][1]) for each in told)
    assert ours == theirs


def by_teller(entries):
    """Reasons by object and component."""
    found = {}
    for kind, name, _, reason, _, component in entries:
        found.setdefault((kind, name, component), []).append(reason)
    return found
