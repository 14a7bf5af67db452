import pytest

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.match_conditions import ConditionFailed, compile_conditions
from pilothouse.machinery.field_errors import Path
from pilothouse.machinery.user import User

JANE = User("jane", "7", ("devs",), {"scopes": ("a",)})
PODS = Attributes(JANE, "list", namespace="n", version="v1", resource="pods")
VERSION = Attributes(JANE, "get", resource_request=False, path="/version")
SELECTORS = {"fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}}


def compiled(*expressions):
    made, errs = compile_conditions(expressions, Path("matchConditions"))
    assert errs == []
    return made


@pytest.mark.parametrize(
    ("expressions", "attributes", "matches"),
    [
        (["request.user == 'jane'"], PODS, True),
        (["request.user == 'joe'"], PODS, False),
        (["'devs' in request.groups", "request.uid == '7'"], PODS, True),
        (["has(request.resourceAttributes)"], PODS, True),
        (["has(request.resourceAttributes)"], VERSION, False),
        (["request.resourceAttributes.namespace == 'n' && request.resourceAttributes.group == ''"], PODS, True),
        (["request.nonResourceAttributes.path == '/version'"], VERSION, True),
        (["request.extra['scopes'][0] == 'a'"], PODS, True),
        (["request.resourceAttributes.fieldSelector.requirements[0].values == ['b']"], PODS, True),
        (["request.extra['none'][0] == 'a'", "request.user == 'joe'"], PODS, False),
    ],
)
def test_conditions(expressions, attributes, matches):
    assert compiled(*expressions).matches(attributes, SELECTORS) is matches


def test_a_condition_that_fails():
    with pytest.raises(ConditionFailed, match=r"cel evaluation error: expression .* no such key: none"):
        compiled("request.extra['none'][0] == 'a'", "request.user == 'jane'").matches(PODS, {})


@pytest.mark.parametrize(
    ("expressions", "error"),
    [
        ([" "], "matchConditions[0].expression: Required value"),
        (["true", "true"], 'matchConditions[1].expression: Duplicate value: "true"'),
        (["request.user"], "must evaluate to bool but got string"),
        (["request.color == ''"], "undefined field 'color'"),
        (["true"] * 65, "matchConditions: Too many: 65: must have at most 64 items"),
    ],
)
def test_errors(expressions, error):
    _, errs = compile_conditions(expressions, Path("matchConditions"))
    assert error in str(errs[0])


def test_none():
    assert compile_conditions([], Path("x")) == (None, [])
