from __future__ import annotations

import pytest

from pilothouse.apis import types
from pilothouse.endpoints.patch.patch_schema import patch_schema
from pilothouse.machinery.merge import strategic


def test_raw_data_is_a_struct_without_fields() -> None:
    schema = patch_schema(types.struct("apps.v1.ControllerRevision"))
    with pytest.raises(strategic.StrategicMergeError) as refused:
        strategic.apply({"data": {"a": {"b": 1}}}, {"data": {"a": {"b": 2}}}, schema)
    assert str(refused.value) == 'unable to find api field in struct RawExtension for the json field "a"'
