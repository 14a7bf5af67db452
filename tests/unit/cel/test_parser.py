import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.cel.issues import CompileError, Source
from pilothouse.cel.macros import OPTIONAL, STANDARD, TWO_VARIABLES
from pilothouse.cel.nodes import Call, Literal, Node, Select
from pilothouse.cel.parser import parse
from pilothouse.cel.values import UInt

MACROS = {**STANDARD, **TWO_VARIABLES, **OPTIONAL}
START = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def read(text: str) -> Node:
    return parse(Source(text), MACROS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("0x1F", 31),
        ("-9223372036854775808", -(2**63)),
        ("3u", UInt(3)),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("'a\\n\\u00e9\\x41\\101'", "a\né" + "AA"),
        ("r'\\d'", "\\d"),
        ("'''it's\n'''", "it's\n"),
        ('""', ""),
        ("b'\\xff\\377'", b"\xff\xff"),
        ("b'é'", "é".encode()),
        ("true", True),
        ("null", None),
        ("--1", 1),
    ],
)
def test_literals(text: str, value: object) -> None:
    node = read(text)
    assert isinstance(node, Literal)
    assert node.value == value
    assert type(node.value) is type(value)


def shape(node: Node) -> object:
    if isinstance(node, Call):
        parts = [shape(argument) for argument in node.arguments]
        return (node.function, *([shape(node.target)] if node.target else []), *parts)
    if isinstance(node, Select):
        return ("has" if node.test else ".", shape(node.operand), node.field)
    return getattr(node, "name", getattr(node, "value", type(node).__name__))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b * c", ("_+_", "a", ("_*_", "b", "c"))),
        ("a - b - c", ("_-_", ("_-_", "a", "b"), "c")),
        ("a * b % c", ("_%_", ("_*_", "a", "b"), "c")),
        ("a < b == c", ("_==_", ("_<_", "a", "b"), "c")),
        ("a || b && c || d", ("_||_", "a", ("_&&_", "b", "c"), "d")),
        ("a ? b : c ? d : e", ("_?_:_", "a", "b", ("_?_:_", "c", "d", "e"))),
        ("!a.b[c]", ("!_", ("_[_]", (".", "a", "b"), "c"))),
        ("!!a", "a"),
        ("-a.b", ("-_", (".", "a", "b"))),
        ("a.f(b)", ("f", "a", "b")),
        ("a.`b-c`.?d[?0]", ("_[?_]", ("_?._", (".", "a", "b-c"), "d"), 0)),
        ("has(a.b)", ("has", "a", "b")),
        ("a in b", ("@in", "a", "b")),
    ],
)
def test_shapes(text: str, wanted: object) -> None:
    assert shape(read(text)) == wanted


def error_of(text: str) -> str:
    with pytest.raises(CompileError) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a >", f"ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {START}\n | a >\n | ...^"),
        ("", f"ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {START}"),
        ("a.", "ERROR: <input>:1:3: Syntax error: no viable alternative at input '.'\n | a.\n | ..^"),
        ("[A{b: 'c']", "ERROR: <input>:1:10: Syntax error: mismatched input ']' expecting {'}', ','}"
                       "\n | [A{b: 'c']\n | .........^"),
        ("(a", "ERROR: <input>:1:3: Syntax error: missing ')' at '<EOF>'\n | (a\n | ..^"),
        ("a)", "ERROR: <input>:1:2: Syntax error: extraneous input ')' expecting <EOF>\n | a)\n | .^"),
        ("a b", "ERROR: <input>:1:3: Syntax error: extraneous input 'b' expecting <EOF>\n | a b\n | ..^"),
        ("a ? b", "ERROR: <input>:1:6: Syntax error: mismatched input '<EOF>' expecting ':'\n | a ? b\n | .....^"),
        ("a.true", "ERROR: <input>:1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER\n | a.true\n | ..^"),
        ("a $ 1", "ERROR: <input>:1:3: Syntax error: token recognition error at: '$'\n | a $ 1\n | ..^\n"
                  "ERROR: <input>:1:5: Syntax error: extraneous input '1' expecting <EOF>\n | a $ 1\n | ....^"),
        ("é", f"ERROR: <input>:1:1: Syntax error: token recognition error at: 'é'\n | é\n | ＾\n"
              f"ERROR: <input>:1:2: Syntax error: mismatched input '<EOF>' expecting {START}\n | é\n | ．^"),
        ("9223372036854775808", "ERROR: <input>:1:1: invalid int literal\n | 9223372036854775808\n | ^"),
        ("18446744073709551616u", "ERROR: <input>:1:1: invalid uint literal\n | 18446744073709551616u\n | ^"),
        ("1e999", "ERROR: <input>:1:1: invalid double literal\n | 1e999\n | ^"),
        ("'\\ud800'", "ERROR: <input>:1:1: invalid unicode code point\n | '\\ud800'\n | ^"),
        ("while", "ERROR: <input>:1:1: reserved identifier: while\n | while\n | ^"),
        ("has(a)", "ERROR: <input>:1:5: invalid argument to has() macro\n | has(a)\n | ....^"),
        ("a.all(b.c, true)", "ERROR: <input>:1:8: argument must be a simple name\n | a.all(b.c, true)\n | .......^"),
        ("a.map(1, 2)", "ERROR: <input>:1:7: argument is not an identifier\n | a.map(1, 2)\n | ......^"),
        ("a.all(b, b, true)", "ERROR: <input>:1:10: duplicate variable name: b\n | a.all(b, b, true)\n | .........^"),
    ],
)  # fmt: skip
def test_errors(text: str, wanted: str) -> None:
    assert error_of(text) == wanted


def test_a_error_on_a_later_line_shows_that_line() -> None:
    assert error_of("a &&\n  b +").endswith("\n |   b +\n | .....^")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 251 + "1" + ")" * 251,
        "a" + ".b" * 300,
        "a" + "[0]" * 300,
        "+".join(["1"] * 300),
        "(" * 5000,
        "[" * 5000,
        "a.all(x," * 3000,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    assert error_of(text).startswith(
        ("ERROR: <input>:-1:0: expression recursion limit exceeded: 250", "ERROR: <input>:")
    )


def test_nesting_up_to_the_limit_is_accepted() -> None:
    read("(" * 249 + "1" + ")" * 249)
    read("||".join(["a"] * 5000))


def test_long_texts_are_refused() -> None:
    wanted = "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    assert error_of("1" * 100_001) == wanted


def test_many_errors_are_cut_off() -> None:
    assert error_of("$ " * 20_000).endswith("more errors were truncated") or "More than 100" in error_of("$ " * 20_000)


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        read(text)
    except CompileError as error:
        assert str(error).startswith("ERROR: <input>:")


@settings(max_examples=120)
@given(
    st.lists(
        st.sampled_from(
            ["a", "1", "'s'", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "+", "-", "!", "==", "&&", "||", "in",
             "true", "has", " ", "\n", "$"]
        ),
        max_size=14,
    )
)  # fmt: skip
def test_any_tokens_parse_or_are_refused(tokens: list[str]) -> None:
    text = "".join(tokens)
    try:
        read(text)
    except CompileError as error:
        assert error.issues
