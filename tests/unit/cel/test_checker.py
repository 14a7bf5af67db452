import pytest

from pilothouse.cel.issues import CompileError
from pilothouse.cel.kubernetes import CURRENT, base_environment
from pilothouse.cel.types import DYN, INT, STRING, Type, list_of, map_of

ENVIRONMENT = base_environment().extend(
    {"s": STRING, "n": INT, "l": list_of(STRING), "m": map_of(STRING, INT), "d": DYN}
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("n + 1", "int"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[1, 2]", "list(int)"),
        ("{'a': [1]}", "map(string, list(int))"),
        ("l.map(x, x.size())", "list(int)"),
        ("m.filter(k, k == 'a')", "list(string)"),
        ("m.transformMap(k, v, string(v))", "map(string, string)"),
        ("l[?0]", "optional_type(string)"),
        ("l[?0].orValue('')", "string"),
        ("d.a.b", "dyn"),
        ("d + 1", "int"),
        ("d + d", "dyn"),
        ("d ? 1 : 2", "int"),
        ("type(n)", "type(int)"),
        ("n == 1 && s == 'x'", "bool"),
        ("timestamp('2020-01-01T00:00:00Z') - timestamp('2019-01-01T00:00:00Z')", "duration"),
        ("1 < 2.0", "bool"),
        ("optional.none()", "optional_type(dyn)"),
        ("[].map(x, x)", "list(dyn)"),
        ("cidr('10.0.0.0/8').ip()", "net.IP"),
        ("'%s %s'.format([1, 'a'])", "string"),
        ("dyn(1)", "dyn"),
        ("[l, ['a']].flatten()", "list(string)"),
    ],
)
def test_types(text: str, wanted: str) -> None:
    assert str(ENVIRONMENT.compile(text).type) == wanted


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        ("x", 1, "undeclared reference to 'x' (in container '')"),
        ("s.frob()", 7, "undeclared reference to 'frob' (in container '')"),
        ("frob(s)", 5, "undeclared reference to 'frob' (in container '')"),
        ("n == 'x'", 3, "found no matching overload for '_==_' applied to '(int, string)'"),
        ("s.startsWith(1)", 13, "found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("n && true", 1, "expected type 'bool' but found 'int'"),
        ("s.a", 2, "type 'string' does not support field selection"),
        ("n.all(x, true)", 1,
         "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"),
        ("[1, 'a']", 5, "expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 's'}", 15, "expected type 'int' but found 'string'"),
        ("{'a': 1, 2: 1}", 10, "expected type 'string' but found 'int'"),
        ("[?1]", 3, "expected type 'optional_type(int)' but found 'int'"),
        ("Foo{}", 4, "undeclared reference to 'Foo' (in container '')"),
        ("int{}", 4, "'int' is not a message type"),
        ("true ? 1 : 'a'", 6, "found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("duration('x')", 10, "invalid duration argument"),
        ("timestamp('x')", 11, "invalid timestamp argument"),
        ("s.matches('(')", 11, "invalid matches argument"),
        ("'%d'.format(['a'])", 14,
         "error during formatting: decimal clause can only be used on integers, was given string"),
        ("'%s'.format([1, 2])", 12, "too many arguments supplied to string.format (expected 1, got 2)"),
        ("'%q'.format([1])", 12, 'could not parse formatting clause: unrecognized formatting clause "q"'),
        ("l.existsOne(x, true)", 12, "undeclared reference to 'existsOne' (in container '')"),
        ("type(s) == kubernetes.Quantity", 12, "undeclared reference to 'kubernetes' (in container '')"),
        ("l.includes('a')", 11, "undeclared reference to 'includes' (in container '')"),
    ],
)  # fmt: skip
def test_errors(text: str, column: int, wanted: str) -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(text)
    first = caught.value.issues[0]
    assert (first.column + 1, first.message) == (column, wanted)


def test_all_errors_are_told_in_order_of_place() -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile("foo + bar")
    assert str(caught.value) == (
        "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo + bar\n | ^\n"
        "ERROR: <input>:1:7: undeclared reference to 'bar' (in container '')\n | foo + bar\n | ......^"
    )


def test_errors_of_what_a_macro_uses_twice_are_told_twice() -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile("x.optMap(y, y).hasValue()")
    assert [issue.message for issue in caught.value.issues] == ["undeclared reference to 'x' (in container '')"] * 2


def test_stored_expressions_may_use_what_is_new() -> None:
    environment = base_environment(CURRENT).extend({"l": list_of(STRING)})
    assert environment.compile("l.includes('a')").evaluate({"l": ["a"]}).value is True


@pytest.mark.parametrize(
    ("terms", "kind"),
    [
        ("'s' || true", "!error!"),
        ("'s' || true || true", "bool"),
        ("true && true && 's'", "!error!"),
        ("'s' || true || true || 's'", "bool"),
    ],
)
def test_a_row_of_terms_is_checked_in_pairs(terms: str, kind: str) -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(f"true ? 1 : {terms}")
    wanted = f"found no matching overload for '_?_:_' applied to '(bool, int, {kind})'"
    assert (wanted in [issue.message for issue in caught.value.issues]) == (kind == "bool")


def test_names_of_variables_used() -> None:
    assert ENVIRONMENT.compile("l.all(x, x == s)").names == {"l", "x", "s", "@result"}


@pytest.mark.parametrize("kind", ["int", "list(string)", "map(string, optional(dyn))"])
def test_chained_optionals_are_checked_in_linear_time(kind: str) -> None:
    text = "d.?a" + ".optMap(x, x)" * 60
    assert isinstance(ENVIRONMENT.compile(text).type, Type)
