"""The converter of untyped objects: what it lets pass, and its words for what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.untyped import restore

DEPLOYMENT = types.struct_of("apps/v1", "Deployment")
POD = types.struct_of("v1", "Pod")
SECRET = types.struct_of("v1", "Secret")


def pod(**container: Any) -> dict[str, Any]:
    return {"spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("struct", "value", "message"),
    [
        (DEPLOYMENT, {"spec": {"replicas": "3"}}, "unrecognized type: int32"),
        (DEPLOYMENT, {"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        (DEPLOYMENT, {"spec": {"paused": "yes"}}, "unrecognized type: bool"),
        (DEPLOYMENT, {"spec": []}, "cannot restore struct from: slice"),
        (DEPLOYMENT, {"metadata": {"labels": {"a": 1}}}, "cannot convert int64 to string"),
        (DEPLOYMENT, {"metadata": {"labels": {"a": True}}}, "unrecognized type: string"),
        (DEPLOYMENT, {"metadata": {"labels": ["a"]}}, "cannot restore map from slice"),
        (DEPLOYMENT, {"metadata": {"labels": "a"}}, "cannot restore map from string"),
        (POD, {"spec": {"containers": {}}}, "cannot restore slice from map"),
        (POD, {"spec": {"containers": 1}}, "cannot restore slice from int64"),
        (POD, {"spec": {"restartPolicy": 1}}, "cannot convert int64 to v1.RestartPolicy"),
        (POD, pod(resources={"limits": {"cpu": "x"}}),
         "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        (SECRET, {"data": {"a": "?"}}, "error decoding from json: illegal base64 data at input byte 0"),
        (SECRET, {"data": {"a": 1}}, "cannot restore slice from int64"),
        (SECRET, {"data": {"a": [{"b": 1}]}}, "unrecognized type: uint8"),
        # Fields are read in the order of the type, whatever the order of the value.
        (DEPLOYMENT, {"spec": {"replicas": "x"}, "metadata": {"name": 1}}, "cannot convert int64 to string"),
    ],
)  # fmt: skip
def test_errors(struct: Any, value: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        restore(struct, value)
    assert str(caught.value) == message


@pytest.mark.parametrize(("given", "kept"), [(3.0, 3), ((1 << 32) + 5, 5), (1 << 31, -(1 << 31)), (None, None)])
def test_integers_wrap_around(given: Any, kept: Any) -> None:
    restored = restore(DEPLOYMENT, {"spec": {"replicas": given, "other": given}})
    assert restored == {"spec": {"replicas": kept, "other": given}}


def test_errors_of_the_decoder_name_inlined_structs() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(POD, {"spec": {"volumes": [{"name": "a", "emptyDir": {"medium": 1}}]}})
    text = "json: cannot unmarshal number into Go struct field EmptyDirVolumeSource.spec.volumes.VolumeSource.emptyDir"
    assert str(caught.value) == f"{text}.medium of type v1.StorageMedium"
