"""Fixtures for tests of anything that talks to Kubernetes. pytest finds them when Pilothouse is installed.

pilothouse_server        one real API server for the whole run, in a thread of the test process
pilothouse_namespace     a new namespace on it, with the service account that pods need
pilothouse_client        a small client of the administrator there; pilothouse_async_client for coroutines
pilothouse_users         makes users with given rights, each with a kubeconfig, service accounts with a token
pilothouse_definitions   installs CRDs from files and folders, and waits until they are served
pilothouse_webhooks      serves and registers admission webhooks that are functions of the test
pilothouse_clock         the time of controllers, which can be skipped
pilothouse_own_server    a server for one test alone, with the flags of its marker

pilothouse_flags and pilothouse_living are to be overridden (scope "session"): flags for the server, and whether it has
controllers, a scheduler and a node. Nothing of the server is imported until a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pilothouse.machinery.objects import Object
    from pilothouse.testing.client import AsyncClient, Client
    from pilothouse.testing.in_process import InProcessServer
    from pilothouse.testing.running_clock import RunningClock
    from pilothouse.testing.users import Users
    from pilothouse.testing.webhooks import Webhooks

__all__ = [
    "pilothouse_async_client",
    "pilothouse_client",
    "pilothouse_clock",
    "pilothouse_definitions",
    "pilothouse_flags",
    "pilothouse_living",
    "pilothouse_namespace",
    "pilothouse_own_server",
    "pilothouse_server",
    "pilothouse_users",
    "pilothouse_webhooks",
]


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and keep pytest from rewriting the assertions of the whole server.

    pytest marks every module of a distribution that has a plug-in. Rewriting some hundred modules takes seconds where
    byte code is not kept, tells nobody anything, and parses in the server's thread beside that of the tests, which
    Python 3.11 does not stand. There is no public way to take a mark back; without the set nothing is lost but time.
    """
    marked = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard(__name__.partition(".")[0])
    config.addinivalue_line(
        "markers", "pilothouse(*flags, living=False): flags of the server that pilothouse_own_server starts"
    )


@pytest.fixture(scope="session")
def pilothouse_flags() -> Sequence[str]:
    """Flags of the server, as ``pilothouse serve`` takes them."""
    return ()


@pytest.fixture(scope="session")
def pilothouse_living() -> bool:
    """Whether the server has controllers, a scheduler and a simulated node."""
    return False


@pytest.fixture(scope="session")
def pilothouse_clock() -> RunningClock:
    """The clock of controllers: the machine's, and ``advance(seconds)`` skips time."""
    from pilothouse.testing.running_clock import RunningClock

    return RunningClock()


@pytest.fixture(scope="session")
def pilothouse_server(
    pilothouse_flags: Sequence[str], pilothouse_living: bool, pilothouse_clock: RunningClock
) -> Iterator[InProcessServer]:
    """A server that all tests of the run share."""
    from pilothouse.testing.in_process import InProcessServer

    with InProcessServer(*pilothouse_flags, living=pilothouse_living, clock=pilothouse_clock) as server:
        yield server


@pytest.fixture
def pilothouse_own_server(request: pytest.FixtureRequest) -> Iterator[InProcessServer]:
    """A server for this test, with the flags of ``@pytest.mark.pilothouse("--flag", ..., living=True)``."""
    from pilothouse.testing.in_process import InProcessServer

    marker = request.node.get_closest_marker("pilothouse")
    flags, more = (marker.args, marker.kwargs) if marker is not None else ((), {})
    with InProcessServer(*flags, **more) as server:
        yield server


@pytest.fixture
def pilothouse_namespace(pilothouse_server: InProcessServer, pilothouse_living: bool) -> Iterator[str]:
    """The name of a namespace for one test. It is deleted afterwards, its objects are not waited for."""
    from pilothouse.testing.client import Client

    client = Client(pilothouse_server.caller())
    wanted = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
    name: str = client.create(wanted)["metadata"]["name"]
    if pilothouse_living:
        client.wait_for("v1/ServiceAccount", "default", namespace=name)
    else:
        client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, name)
    yield name
    client.delete("v1/Namespace", name)


@pytest.fixture
def pilothouse_client(pilothouse_server: InProcessServer, pilothouse_namespace: str) -> Client:
    """A client of the administrator, in the test's namespace."""
    from pilothouse.testing.client import Client

    return Client(pilothouse_server.caller(), pilothouse_namespace)


@pytest.fixture
def pilothouse_async_client(pilothouse_client: Client) -> AsyncClient:
    """The same for coroutines."""
    from pilothouse.testing.client import AsyncClient

    return AsyncClient(pilothouse_client)


@pytest.fixture
def pilothouse_users(pilothouse_server: InProcessServer, pilothouse_namespace: str) -> Iterator[Users]:
    """Makes users; their rights end with the test."""
    from pilothouse.testing.users import Users

    users = Users(pilothouse_server, pilothouse_namespace)
    yield users
    users.close()


@pytest.fixture
def pilothouse_webhooks(pilothouse_server: InProcessServer, pilothouse_namespace: str) -> Iterator[Webhooks]:
    """Serves and registers webhooks for the test's namespace."""
    from pilothouse.testing.webhooks import Webhooks

    webhooks = Webhooks(pilothouse_server, pilothouse_namespace)
    yield webhooks
    webhooks.close()


@pytest.fixture
def pilothouse_definitions(pilothouse_server: InProcessServer) -> Iterator[Callable[..., list[Object]]]:
    """Call it with files or folders: their CRDs are installed and served when it returns, and deleted at the end."""
    from pilothouse.testing.client import Client
    from pilothouse.testing.manifests import read_manifests

    client, names = Client(pilothouse_server.caller()), list[str]()

    def install(*paths: str | Path) -> list[Object]:
        found = [each for each in read_manifests(*paths) if each["kind"] == "CustomResourceDefinition"]
        if not found:
            raise ValueError(f"no CustomResourceDefinition in {', '.join(map(str, paths))}")
        for definition in found:
            pilothouse_server.establish(definition)
            names.append(definition["metadata"]["name"])
        return found

    yield install
    for name in names:
        client.delete("apiextensions.k8s.io/v1/CustomResourceDefinition", name)
