"""Requests without a network."""

from types import SimpleNamespace
from typing import Any

import pytest

from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.machinery.user import User


@pytest.fixture
def make_request() -> Any:
    def make(method: str = "GET", target: str = "/api/v1/namespaces/a/pods", **headers: str) -> Any:
        path, _, query = target.partition("?")
        return SimpleNamespace(
            method=method,
            target=target.encode(),
            path=path,
            query=query,
            headers={name.replace("_", "-").encode(): value.encode() for name, value in headers.items()},
            connection=SimpleNamespace(peer=("192.0.2.1", 4711)),
            info=resolve(method, path, Query(query)),
            audit_id="id",
            audit=None,
            authentication_seconds=0.0,
            credential_notes=(),
            timed_out=False,
            user=User("jane", "7", ("devs",)),
        )

    return make
