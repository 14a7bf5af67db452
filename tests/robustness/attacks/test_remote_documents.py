"""Servers behind the server that describe themselves at length: OpenAPI of thousands of kinds."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson
import pytest
from tests.robustness.attacks.conftest import Victim
from tests.robustness.attacks.outside_party import OutsideParty

from pilothouse.credentials.pki import Pki
from pilothouse.testing.aggregated_servers import API_SERVICES, SERVICES, api_service, loopback_service


@pytest.fixture
def party(victim: Victim, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideParty]:
    folder = tmp_path_factory.mktemp("party")
    made = OutsideParty(Pki(victim.server.data / "pki"), folder, lambda sent: b"")
    yield made
    made.close()


def register(victim: Victim, party: OutsideParty, group: str) -> None:
    port = urlsplit(party.url).port
    assert port is not None
    name = group.partition(".")[0]
    assert victim.call("POST", SERVICES, loopback_service(name, port)).status == 201
    assert victim.call("POST", API_SERVICES, api_service(group, "v1", name, port)).status == 201


def test_openapi_of_very_many(victim: Victim, party: OutsideParty) -> None:
    group, count = "long.example.com", 8_000
    ok = {"responses": {"200": {"description": "OK"}}}
    paths = {f"/apis/{group}/v1/r{n}": {"get": {**ok, "operationId": f"get{n}"}} for n in range(count)}
    definitions = {
        f"com.example.v1.T{n}": {"type": "object", "properties": {"a": {"type": "string"}}} for n in range(count)
    }
    document = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": paths, "definitions": definitions}
    party.documents["/openapi/v2"] = orjson.dumps(document)
    with victim.attacked(f"OpenAPI of {count} paths", allowance=128 << 20):
        register(victim, party, group)
        while f"com.example.v1.T{count - 1}".encode() not in victim.call("GET", "/openapi/v2").body:
            assert victim.server.process.poll() is None
