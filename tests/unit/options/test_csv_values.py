import contextlib
import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.options.csv_values import read_csv
from pilothouse.options.go_numbers import ValueRefused


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        ("a,,b", ("a", "", "b")),
        (",", ("", "")),
        ('"a,b",c', ("a,b", "c")),
        ('"say ""hi""",x', ('say "hi"', "x")),
        ('a,"b"', ("a", "b")),
        ('"a",', ("a", "")),
        (" a , b ", (" a ", " b ")),
        ("a,b\nc", ("a", "b")),
        ('"a"\nc', ("a",)),
    ],
)
def test_records(text, fields):
    assert read_csv(text) == fields


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a"b', 'parse error on line 1, column 2: bare " in non-quoted-field'),
        ('x,a"', 'parse error on line 1, column 4: bare " in non-quoted-field'),
        ('"a"b', 'parse error on line 1, column 3: extraneous or missing " in quoted-field'),
        ('"ab', 'parse error on line 1, column 4: extraneous or missing " in quoted-field'),
    ],
)
def test_refused(text, message):
    with pytest.raises(ValueRefused) as refusal:
        read_csv(text)
    assert str(refusal.value) == message


_FIELD = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=("Cs",)), max_size=8)


@given(st.lists(_FIELD, min_size=2, max_size=5))
def test_what_a_csv_writer_writes_is_read_back(fields):
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(fields)
    assert read_csv(written.getvalue()) == tuple(fields)


@given(st.text(max_size=30))
def test_any_text_ends(text):
    with contextlib.suppress(ValueRefused):
        read_csv(text)
