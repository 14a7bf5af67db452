"""What is too large for storage, and what a client is told then."""

from __future__ import annotations

import pytest

from pilothouse.apis import types
from pilothouse.registry.store.sizing import check_size, transaction_size
from pilothouse.storage.backends.contract import TooLarge

MIB = 1024 * 1024
KEY = "/registry/pods/default/x"
TAKEN = "etcdserver: request is too large"


@pytest.mark.parametrize(
    ("key", "value", "revision", "size"),
    [
        # compare (10 3 f:target f:key f:revision), put (key, value) and get (key), each as a message in the next
        (1, 1, 0, (2 + 2 + 3 + 2) + (2 + 2 + 3 + 3) + (2 + 2 + 3)),
        (1, 200, 300, (2 + 2 + 3 + 3) + (3 + 3 + 3 + 203) + (2 + 2 + 3)),
    ],
)
def test_size_of_transactions(key: int, value: int, revision: int, size: int) -> None:
    assert transaction_size(key, value, revision) == size


@pytest.mark.parametrize(
    ("length", "refusal"),
    [
        (1536 * 1024 - 200, None),
        (1536 * 1024, TAKEN),
        (2048 * 1024 - 200, TAKEN),
        (
            2048 * 1024,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097256 vs. 2097152)",
        ),
    ],
)
def test_custom_objects_count_as_json(length: int, refusal: str | None) -> None:
    if refusal is None:
        check_size(KEY, {}, length, 0, None)
        return
    with pytest.raises(TooLarge) as caught:
        check_size(KEY, {}, length, 0, None)
    assert str(caught.value) == refusal


def test_built_in_objects_count_as_protobuf() -> None:
    struct = types.struct("core.v1.ConfigMap")
    obj = {"metadata": {"name": "x"}, "data": {f"key-{n}": "" for n in range(100_000)}}
    check_size(KEY, obj, 3 * MIB, 5, struct)
    obj["data"] = {f"key-{n}": "value" for n in range(100_000)}
    with pytest.raises(TooLarge):
        check_size(KEY, obj, 3 * MIB, 5, struct)


def test_definitions_count_as_json() -> None:
    struct = types.struct("apiextensions.v1.CustomResourceDefinition")
    with pytest.raises(TooLarge):
        check_size(KEY, {"metadata": {"name": "x"}}, 3 * MIB, 5, struct)
