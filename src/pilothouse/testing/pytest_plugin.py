"""Fixtures for tests of anything that talks to Kubernetes: ``pytest_plugins = ["pilothouse.testing.pytest_plugin"]``.

pilothouse_server      one real API server for the whole run, in a thread of the test process
pilothouse_namespace   a new namespace on it, with the service account that pods need
pilothouse_flags       override it (scope "session") to give the server flags
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from pilothouse.testing.in_process import InProcessServer

__all__ = ["pilothouse_flags", "pilothouse_namespace", "pilothouse_server"]


@pytest.fixture(scope="session")
def pilothouse_flags() -> Sequence[str]:
    """Flags of the server, as ``pilothouse serve`` takes them."""
    return ()


@pytest.fixture(scope="session")
def pilothouse_server(pilothouse_flags: Sequence[str]) -> Iterator[InProcessServer]:
    """A server that all tests of the run share."""
    with InProcessServer(*pilothouse_flags) as server:
        yield server


@pytest.fixture
def pilothouse_namespace(pilothouse_server: InProcessServer) -> Iterator[str]:
    """The name of a namespace for one test. It is deleted afterwards, its objects are not waited for."""
    wanted = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
    name: str = pilothouse_server.call("POST", "/api/v1/namespaces", wanted).json["metadata"]["name"]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    pilothouse_server.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    yield name
    pilothouse_server.call("DELETE", f"/api/v1/namespaces/{name}")
