"""Maps of a hundred thousand keys are read and written without one call that goes through all of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.machinery.shares import Shares

from pilothouse.apis import types
from pilothouse.machinery import piecewise
from pilothouse.machinery.protobuf.decoding import decode_message
from pilothouse.machinery.protobuf.encoding import encode_message
from pilothouse.machinery.schema import decoding

CONFIG_MAP = types.struct("core.v1.ConfigMap")
COUNT, FEW = 100_000, 5_000


def test_keys_are_sorted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = Shares()
    monkeypatch.setattr(piecewise, "sorted", shares.of(sorted), raising=False)
    data = {f"key-{number * 7919 % COUNT}": "v" for number in range(COUNT)}
    written = encode_message(CONFIG_MAP, {"metadata": {"name": "m"}, "data": data})
    assert shares.total >= COUNT
    assert shares.most <= FEW
    assert list(decode_message(CONFIG_MAP, written)["data"]) == sorted(data)


@pytest.mark.parametrize("last", ["v", 1, None])
def test_values_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch, last: Any) -> None:
    shares = Shares()
    monkeypatch.setattr(decoding, "set", lambda found=(): shares.of(set)([*found]), raising=False)
    data: dict[str, Any] = {**{f"k{number}": "v" for number in range(COUNT)}, "last": last}
    body = {"metadata": {}, "data": data}
    if last == 1:
        with pytest.raises(decoding.DecodeError, match=r"ConfigMap\.data of type string"):
            decoding.decode(CONFIG_MAP, body)
    else:
        assert decoding.decode(CONFIG_MAP, body)[0]["data"]["last"] == (last or "")
    assert shares.total >= COUNT
    assert shares.most <= FEW
