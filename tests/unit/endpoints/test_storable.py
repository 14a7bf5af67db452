"""Bodies whose items alone are too much for the store are refused before objects are made of them."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.endpoints.storable import check_message_storable, check_storable
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.protobuf.encoding import encode_message
from pilothouse.machinery.schema.decoding import decode

POD = types.struct("core.v1.Pod")
TOO_MANY = 100_000
"""Empty containers take 26 bytes each in storage."""


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


HUGE = [
    pod(containers=[{}] * TOO_MANY),
    pod(containers=[{"ports": [{}] * 30_000}] * 10),
    pod(initContainers=[{}] * 50_000, containers=[{}] * 50_000),
    pod(volumes=[{"projected": {"sources": [{"secret": {"items": [{}] * 20_000}}] * 10}}] * 5),
]


@pytest.mark.parametrize("body", HUGE)
def test_what_cannot_be_stored(body: dict[str, Any]) -> None:
    with pytest.raises(StatusError, match="request is too large"):
        check_storable(POD, body)
    message = encode_message(POD, decode(POD, body)[0])
    with pytest.raises(StatusError, match="request is too large"):
        check_message_storable(POD, message)


FINE = [
    pod(containers=[{}] * 1_000, volumes=[{"name": "v"}] * 1_000),
    {**pod(), "status": {"conditions": [{}] * TOO_MANY}},
    pod(containers=None, volumes={}, tolerations=[None, 1, "x"]),
    {"spec": []},
    None,
]


@pytest.mark.parametrize("body", FINE)
def test_what_may_be_stored_or_is_refused_elsewhere(body: Any) -> None:
    check_storable(POD, body)


def test_policies_of_nothing_take_next_to_nothing() -> None:
    struct = types.struct("networking.v1.NetworkPolicy")
    body = {"spec": {"podSelector": {}, "ingress": [{}] * 500_000}}
    check_storable(struct, body)
    check_message_storable(struct, encode_message(struct, decode(struct, body)[0]))


def test_bytes_that_are_no_message_are_left_to_decoding() -> None:
    check_message_storable(POD, b"\x12\xff\xff\xff\xff\xff\xff")
