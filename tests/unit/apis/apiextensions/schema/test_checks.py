"""Checks say of every number what the errors say that explain them."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pilothouse.apis.apiextensions.schema.checks import compile_check
from pilothouse.apis.apiextensions.schema.values import explain

WHOLE = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, 2**63, -(2**31), 2**31 - 1, 2**31, 2**70])
LIMITS = WHOLE | st.sampled_from([0.0, 1.5, -2.5])
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["integer", "number"]),
        "format": st.sampled_from(["int32", "int64", "float", "double"]),
        "minimum": LIMITS,
        "maximum": LIMITS,
        "exclusiveMinimum": st.booleans(),
        "exclusiveMaximum": st.booleans(),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
    },
)


@given(SCHEMAS, WHOLE | st.floats(-4, 4))
@example({"type": "number", "multipleOf": 2}, 2**63)
def test_a_number_passes_where_there_is_nothing_to_explain(schema: dict[str, Any], value: float) -> None:
    assert compile_check(schema)(value) == (not explain(schema, value, "", None).errors)
