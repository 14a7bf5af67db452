import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.authn.csv_records import read_records
from pilothouse.authn.token_file import TokenFile, parse_token_file
from pilothouse.machinery.user import User


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("t,alice,1", {"t": User("alice", "1")}),
        ('t,alice,1,"a,b"\n', {"t": User("alice", "1", ("a", "b"))}),
        ("t,alice,1,", {"t": User("alice", "1", ("",))}),
        ("t,alice,1,a,ignored\r\nu,bob,2\r\n", {"t": User("alice", "1", ("a",)), "u": User("bob", "2")}),
        ("t,alice,1\n\n\nt,bob,2\n", {"t": User("bob", "2")}),
        (",nobody,0\n", {}),
        ("", {}),
    ],
)
def test_parse(text, users):
    assert parse_token_file(text.encode(), "f") == users


def test_warnings():
    warnings = []
    parse_token_file(b",n,0\nt,a,1\nt,b,2\n", "f", warnings.append)
    assert warnings == [
        "empty token has been found in token file 'f', record number '1'",
        "duplicate token has been found in token file 'f', record number '3'",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("t,alice", "token file 'f' must have at least 3 columns (token, user name, user uid), found 2"),
        ('t,al"ice,1', 'parse error on line 1, column 5: bare " in non-quoted field'),
        ('t,"alice"x,1', 'parse error on line 1, column 9: extraneous or missing " in quoted-field'),
        (
            'a,b,c\nt,"al\nice',
            'record on line 2; parse error on line 3, column 4: extraneous or missing " in quoted-field',
        ),
        ('t,"x', 'parse error on line 1, column 5: extraneous or missing " in quoted-field'),
    ],
)
def test_errors(text, error):
    with pytest.raises(ValueError) as caught:
        parse_token_file(text.encode(), "f")
    assert str(caught.value) == error


def test_quoted_fields_span_lines_and_double_quotes():
    assert read_records(b'"a\nb","c""d",\n"",x') == [["a\nb", 'c"d', ""], ["", "x"]]


@given(st.lists(st.lists(st.text(alphabet='ab,"\n é'), min_size=2, max_size=4), max_size=5))
def test_what_is_quoted_is_read_back(records):
    text = "".join(",".join('"' + field.replace('"', '""') + '"' for field in record) + "\n" for record in records)
    assert read_records(text.encode()) == records


@given(st.binary(max_size=60))
def test_reader_ends_on_any_bytes(content):
    try:
        read_records(content)
    except ValueError as error:
        assert "parse error on line" in str(error)


async def test_file_is_read_again_when_it_changes(tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text("t,alice,1\n")
    tokens = TokenFile(str(path))
    assert (await tokens.authenticate_token("t", ())).user.name == "alice"
    assert not tokens.file.poll()
    path.write_text("u,bob,2,ops\n")
    assert tokens.file.poll()
    assert await tokens.authenticate_token("t", ()) is None
    assert (await tokens.authenticate_token("u", ())).user == User("bob", "2", ("ops",))
    path.write_text("broken,1\n")
    os.utime(path, ns=(1, 1))
    assert not tokens.file.poll()
    assert "at least 3 columns" in str(tokens.file.error)
    assert (await tokens.authenticate_token("u", ())).user.name == "bob"
