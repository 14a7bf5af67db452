from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import fields
from pilothouse.machinery.fields import Requirement, Selector, SelectorError, parse


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("x=a,y=b,z=c", "x=a,y=b,z=c"),
        ("", ""),
        (",,", ""),
        ("x!=a,y=b", "x!=a,y=b"),
        ("y==b,x=a", "x=a,y=b"),
        ("x=", "x="),
        ("=b", "=b"),
        (r"x=a||y\=b", r"x=a||y\=b"),
        (r"x=a\=\=b", r"x=a\=\=b"),
        (r"x=a\,b", r"x=a\,b"),
        (r"a=\\,b=c", r"a=\\,b=c"),
        ("x!y=z", "x!y=z"),
        ("a b = c", "a b = c"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b,metadata.name>a", "invalid selector: 'a=b,metadata.name>a'; can't understand 'metadata.name>a'"),
        ("x=a==b", "invalid field selector: unescaped character in value: 61"),
        ("x=a,b", "invalid selector: 'x=a,b'; can't understand 'b'"),
        (r"x=\a", r"invalid field selector: invalid escape sequence: \a"),
        ("x=a\\", "invalid field selector: invalid escape sequence: \\"),
        ("x=a\\,\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "held", "expected"),
    [
        ("", {"x": "y"}, True),
        ("x=y", {"x": "y"}, True),
        ("x=y", {"x": "z"}, False),
        ("x=y,z=w", {"x": "y", "z": "w"}, True),
        ("x!=y,z!=w", {"x": "z", "z": "w"}, False),
        ("x=", {}, True),
        ("x!=", {}, False),
        (r"x=a\,b", {"x": "a,b"}, True),
    ],
)
def test_matching(text: str, held: dict[str, str], expected: bool) -> None:
    assert parse(text).matches(held) is expected


def test_transform() -> None:
    def convert(name: str, value: str) -> tuple[str, str]:
        if name == "gone":
            return "", ""
        if name == "bad":
            raise SelectorError("field label not supported: bad")
        return name.removeprefix("metadata."), value

    assert str(parse("metadata.name=a,gone=x,b!=c", convert)) == "b!=c,name=a"
    assert parse("gone=x", convert).empty
    with pytest.raises(SelectorError, match=r"^field label not supported: bad$"):
        parse("bad=1", convert)


def test_exact_value() -> None:
    selector = parse("metadata.name=web,status.phase!=Running")
    assert selector.exact_value("metadata.name") == "web"
    assert selector.exact_value("status.phase") is None
    assert fields.exactly("metadata.name", "web") == parse("metadata.name=web")
    assert fields.EVERYTHING.empty


REQUIREMENTS = st.builds(Requirement, st.sampled_from(["a", "b.c"]), st.sampled_from(["=", "!="]), st.text())


@given(st.lists(REQUIREMENTS, max_size=4))
def test_text_round_trips(requirements: list[Requirement]) -> None:
    parsed = parse(str(Selector(requirements)))
    assert sorted(parsed.requirements) == sorted(requirements)


@given(st.text(alphabet="ab=!,\\ \n", max_size=25))
def test_any_text_parses_or_says_why(text: str) -> None:
    try:
        selector = parse(text)
    except SelectorError:
        return
    assert sorted(parse(str(selector)).requirements) == sorted(selector.requirements)
