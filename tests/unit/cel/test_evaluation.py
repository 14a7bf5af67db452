import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.cel.issues import CompileError
from pilothouse.cel.kubernetes import base_environment
from pilothouse.cel.types import DYN, INT, STRING, list_of
from pilothouse.cel.values import CostLimitExceeded, EvaluationError, UInt

ENVIRONMENT = base_environment().extend({"a": INT, "b": INT, "s": STRING, "l": list_of(INT), "d": DYN})
VALUES: dict[str, Any] = {
    "a": 7,
    "b": -2,
    "s": "héllo",
    "l": [3, 1, 2],
    "d": {"x": {"y": [1, "two", None]}, "n": 1, "b": True, "empty": {}},
}


def run(text: str, **values: Any) -> Any:
    return ENVIRONMENT.compile(text).evaluate({**VALUES, **values}).value


@pytest.mark.parametrize(
    "text",
    [
        "a + b == 5 && a - b == 9 && a * b == -14",
        "a / b == -3 && a % b == 1 && -7 / 2 == -3 && -7 % 2 == -1",
        "7u / 2u == 3u && 5u % 3u == 2u",
        "1.0 / 0.0 > 1.0 && -1.0 / 0.0 < 0.0",
        "s.size() == 5 && size(s) == 5",
        "s + '!' == 'héllo!' && b'a' + b'b' == b'ab'",
        "l + [4] == [3, 1, 2, 4] && l[0] == 3 && 2 in l && !(5 in l)",
        "d.x.y[1] == 'two' && d.x['y'][2] == null",
        "d.n != true && d.b != 1 && d.n == 1.0 && d.n in [1.0, 2.0]",
        "{dyn(1): 'a', dyn(true): 'b'}[true] == 'b' && {dyn(1): 'a', dyn(true): 'b'}[1] == 'a'",
        "has(d.x) && !has(d.z) && !has(d.x.z)",
        "d.?z.?q.orValue(3) == 3 && d.?n.orValue(3) == 1 && d[?'z'].or(d[?'n']).value() == 1",
        "l.all(x, x > 0) && l.exists(x, x == 2) && l.exists_one(x, x > 2) && !l.exists_one(x, x > 1)",
        "l.map(x, x * 2) == [6, 2, 4] && l.filter(x, x > 1) == [3, 2] && l.map(x, x > 1, x + 1) == [4, 3]",
        "l.all(i, v, i < 3 && v < 4) && l.transformList(i, v, i * v) == [0, 1, 4]",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && {'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}",
        "[1, 2, 3].sortBy(x, -x) == [3, 2, 1] && l.sort() == [1, 2, 3] && l.reverse() == [2, 1, 3]",
        "false && 1 / 0 == 1 || true",
        "(1 / 0 == 1) || true",
        "!((1 / 0 == 1) && false)",
        "[1, 0].exists(x, 1 / x == 1) && ![0, 1].all(x, 1 / x == 5)",
        "true ? true : 1 / 0 == 0",
        "type(a) == int && type(s) == string && type(d) == map && type(type(a)) == type && type(null) == null_type",
        "int('12') == 12 && int(1.9) == 1 && string(1.5e10) == '1.5e+10' && double('1e3') == 1000.0",
        "string(1000000.0) == '1e+06' && string(0.0001) == '0.0001' && string(123456.0) == '123456'",
        "uint(3) == 3u && bool('true') && bytes('é') == b'\\xc3\\xa9' && string(b'abc') == 'abc'",
        "duration('1h30m').getMinutes() == 90 && string(duration('90m')) == '5400s' && duration('1s') < duration('1m')",
        "timestamp('2023-05-06T07:08:09.123Z').getMilliseconds() == 123",
        "timestamp('2023-05-06T07:08:09Z').getHours('+02:00') == 9 && timestamp(0).getFullYear() == 1970",
        "timestamp('2023-12-31T23:30:00Z').getDayOfYear() == 364",
        "timestamp('2023-05-06T00:00:00Z').getDayOfWeek() == 6",
        "timestamp('2023-05-06T07:08:09Z').getHours('America/New_York') == 3",
        "string(timestamp('2023-05-06T07:08:09+01:00')) == '2023-05-06T07:08:09+01:00'",
        "timestamp('2023-05-06T00:00:00Z') + duration('24h') == timestamp('2023-05-07T00:00:00Z')",
        "optional.of(1) == optional.of(1) && optional.none() == optional.none() && optional.of(1) != optional.none()",
        "[?optional.none(), ?optional.of(2)] == [2] && {?'a': optional.none()} == {}",
        "d.?n.optMap(x, x + 1).value() == 2 && !d.?z.optMap(x, x + 1).hasValue()",
        "optional.ofNonZeroValue('').hasValue() == false && [1].first().value() == 1 && [].last() == optional.none()",
        "a == 7 && a in [1, 7]",
        "'a' < 'b' && b'a' < b'b' && false < true && 1 < 2.5 && 2u > 1",
    ],
)
def test_truths(text: str) -> None:
    assert run(text) is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("18446744073709551615u + 1u", "unsigned integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("d.zzz", "no such key: zzz"),
        ("d.zzz in {}", "no such key: zzz"),
        ("d['zzz']", "no such key: zzz"),
        ("l[9]", "index out of bounds: 9"),
        ("l[-1]", "index out of bounds: -1"),
        ("d.n + d.x", "no such overload"),
        ("d.x + 1", "no such overload: _+_"),
        ("d.n.startsWith('a')", "no such overload"),
        ("d.n ? 1 : 2", "no such overload"),
        ("d.n && true", "no such overload"),
        ("d.n.all(x, true)", "got 'types.Int', expected iterable type"),
        ("quantity(s)", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("optional.none().value()", "optional.none() dereference"),
        ("[].max()", "max called on empty list"),
        ("int(s)", "type conversion error from 'string' to 'int'"),
        ("timestamp(s)", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        ("duration('9223372036s') + duration('9223372036s')", "duration overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
        ("int(1e30 + double(a))", "integer overflow"),
        ("s.matches(s + '(')", "error parsing regexp: missing closing ): `héllo(`"),
        ("s.find(s + '(')", "Illegal regex: error parsing regexp: missing closing ): `héllo(`"),
        ("{'a': 1}.transformMapEntry(k, v, {1: 1, 2: 2}).size() + [1, 1].transformMapEntry(i, v, {v: i}).size()",
         "insert failed: key 1 already exists"),
        ("s.substring(9)", "index out of range: 9"),
        ("[1].slice(0, 3)", "cannot slice(0, 3), list is length 1"),
        ("dyn(l).flatten(-1)", "level must be non-negative"),
        ("timestamp(0).getHours('Nowhere')", "unknown time zone Nowhere"),
    ],
)  # fmt: skip
def test_failures(text: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        run(text)
    assert str(caught.value) == message


def test_a_missing_variable_is_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"no such attribute\(s\): a"):
        ENVIRONMENT.compile("a == 1").evaluate({})


def test_a_value_that_contradicts_its_type_is_an_error_not_a_crash() -> None:
    with pytest.raises(EvaluationError):
        run("s.split('-').size() > a", s=5)


INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)


def wrapped(compute: Any) -> Any:
    try:
        return compute()
    except EvaluationError as error:
        return str(error)


@given(INT64, INT64)
def test_integers_have_64_bits(a: int, b: int) -> None:
    for operator, exact in (("+", a + b), ("-", a - b), ("*", a * b)):
        wanted = exact if -(2**63) <= exact < 2**63 else "integer overflow"
        assert wrapped(lambda operator=operator: run(f"a {operator} b", a=a, b=b)) == wanted
    if b:
        quotient = wrapped(lambda: run("a / b", a=a, b=b))
        if quotient != "integer overflow":
            assert quotient * b + run("a % b", a=a, b=b) == a
            assert abs(quotient) == abs(a) // abs(b)
    assert run("a < b", a=a, b=b) == (a < b)


@given(UINT64, UINT64)
def test_unsigned_integers_have_64_bits(a: int, b: int) -> None:
    environment = base_environment().extend({"d": DYN, "e": DYN})
    for operator, exact in (("+", a + b), ("-", a - b), ("*", a * b)):
        wanted = exact if 0 <= exact < 2**64 else "unsigned integer overflow"
        program = environment.compile(f"d {operator} e")
        assert wrapped(lambda program=program: program.evaluate({"d": UInt(a), "e": UInt(b)}).value) == wanted


@given(INT64)
def test_integers_survive_strings(a: int) -> None:
    assert run("int(string(a)) == a", a=a) is True


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_survive_strings(value: float) -> None:
    assert run("double(string(d)) == d", d=value) is True


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=40))
def test_strings_survive_bytes_and_splitting(text: str) -> None:
    assert run("string(bytes(s)) == s && s.split('').join('') == s && s.split('a').join('a') == s", s=text) is True


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
SNIPPETS = [
    "d", "d.a", "d[0]", "d['a']", "d == d", "d + d", "d.size()", "d.all(x, x == d)", "d.map(x, [x, x])", "d in d",
    "d.exists(x, x > d)", "string(d)", "d ? d : d", "d.?a.orValue(d)", "'%s'.format([d])", "d.matches(d)", "d < d",
    "has(d.a.b)", "d.filter(x, x)", "[d, d].distinct()", "d && d", "!d", "-d", "d.split(d)", "d.replace(d, d)",
    "d.flatten()", "d.sum()", "ip(d)", "quantity(d).isLessThan(quantity(d))", "d.transformMap(k, v, v)",
]  # fmt: skip


@settings(max_examples=120)
@given(st.sampled_from(SNIPPETS), st.sampled_from(["", " == d", " || true", " in [d]"]), JSON)
def test_anything_evaluates_or_fails_in_words(snippet: str, rest: str, value: Any) -> None:
    try:
        program = ENVIRONMENT.compile(snippet + rest)
    except CompileError:
        return
    try:
        program.evaluate({"d": value})
    except EvaluationError as error:
        assert str(error)


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
        "lists.range(999999999).size() > 0",
        "big.replace('', big).size() > 0",
        "big.replace('', big).replace('', big).size() > 0",
        "many.all(x, (many + many).size() > 0)",
        "many.map(x, many.map(y, many)).size() > 0",
        "many.sort() == many.sort()",
        "many.distinct().size() == 0",
        "sets.equivalent(many, many)",
        "big.matches(big)",
    ],
)
def test_hostile_expressions_are_stopped(text: str) -> None:
    environment = base_environment().extend({"big": STRING, "many": list_of(INT)})
    with pytest.raises(CostLimitExceeded):
        environment.compile(text).evaluate({"big": "a" * 300_000, "many": list(range(20_000))})


def test_growing_lists_by_binding_is_bounded() -> None:
    text = "l"
    for _ in range(30):
        text = f"[{text}].map(x, x + x)[0]"
    with pytest.raises(CostLimitExceeded):
        ENVIRONMENT.compile(f"{text}.size() > 0").evaluate({"l": list(range(1000))})


def test_literals_of_a_long_list_are_not_descended_to() -> None:
    """A policy may have millions of them; each takes fewer calls than the grammar has levels."""
    count, calls = 1_000, 0
    text = f"[{','.join(['1'] * count)}].size() == {count}"

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        assert run(text)
    finally:
        sys.setprofile(None)
    assert calls < 10 * count
