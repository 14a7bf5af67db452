"""Values that read themselves have the first word about errors."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.own_errors import gravest

POD = types.struct_of("v1", "Pod")
SUFFIX = "unable to parse quantity's suffix"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"kind": 1}, "json: cannot unmarshal number into Go struct field Pod.kind of type string"),
        ({"kind": 1, "spec": {"overhead": {"cpu": "64Mi1"}}}, SUFFIX),
        ({"spec": {"overhead": {"cpu": "64Mi1"}}, "metadata": {"creationTimestamp": "x"}}, SUFFIX),
        (
            {"spec": [], "metadata": {"name": 1, "creationTimestamp": [1]}},
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            {"spec": {"containers": [{"name": 1}, {"livenessProbe": {"httpGet": {"port": True}}}]}},
            "json: cannot unmarshal bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler"
            ".httpGet.port of type int32",
        ),
    ],
)
def test_the_gravest(value: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(POD, value)
    assert str(gravest(POD, value, caught.value)) == message
