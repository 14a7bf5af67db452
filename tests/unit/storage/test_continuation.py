import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.storage.continuation import (
    Continuation,
    InvalidContinue,
    continue_after,
    decode_continue,
    encode_continue,
)

PODS = "/registry/pods/"


def token(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def test_is_encoded_as_upstream_does():
    expected = token('{"v":"meta.k8s.io/v1","rv":42,"start":"default/a\\u0000"}')
    assert continue_after("/registry/pods/default/a", PODS, 42) == expected


def test_html_characters_are_escaped_as_go_does():
    assert encode_continue("/registry/pods/a<b", PODS, 1) == token('{"v":"meta.k8s.io/v1","rv":1,"start":"a\\u003cb"}')


def test_round_trip():
    made = continue_after("/registry/pods/default/a", PODS, 42)
    assert decode_continue(made, PODS) == Continuation("/registry/pods/default/a\0", 42)


def test_inconsistent_continuation():
    found = decode_continue(encode_continue("/registry/pods/a/b", PODS, -1), PODS)
    assert found.revision == -1


@pytest.mark.parametrize("key, prefix", [("/registry/secrets/a", PODS), ("/registry/pods/a", "")])
def test_a_key_outside_its_prefix_cannot_be_encoded(key, prefix):
    with pytest.raises(ValueError, match="unable to encode next field: the key and key prefix do not match"):
        encode_continue(key, prefix, 1)


INVALID = "continue key is not valid"


@pytest.mark.parametrize(
    "text, message",
    [
        ("a b", f"{INVALID}: illegal base64 data at input byte 1"),
        ("abcd=", f"{INVALID}: illegal base64 data at input byte 4"),
        ("abcde", f"{INVALID}: illegal base64 data at input byte 4"),
        ("é", f"{INVALID}: illegal base64 data at input byte 0"),
        ("", f"{INVALID}: unexpected end of JSON input"),
        (token("x"), f"{INVALID}: invalid character 'x' looking for beginning of value"),
        (token("[]"), f"{INVALID}: json: cannot unmarshal array into Go value of type storage.continueToken"),
        (token("1"), f"{INVALID}: json: cannot unmarshal number into Go value of type storage.continueToken"),
        (
            token('{"v":"meta.k8s.io/v1","rv":"1"}'),
            f"{INVALID}: json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        ),
        (
            token('{"rv":1.5}'),
            f"{INVALID}: json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64",
        ),
        (token("null"), f"{INVALID}: server does not recognize this encoded version "),
        (
            token('{"v":1}'),
            f"{INVALID}: json: cannot unmarshal number into Go struct field continueToken.v of type string",
        ),
        (token('{"V":"v2"}'), f"{INVALID}: server does not recognize this encoded version v2"),
        (token('{"v":"v2"}'), f"{INVALID}: server does not recognize this encoded version v2"),
        (
            token('{"v":"meta.k8s.io/v1","start":"a"}'),
            f"{INVALID}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (token('{"v":"meta.k8s.io/v1","rv":1}'), f"{INVALID}: encoded start key empty (version meta.k8s.io/v1)"),
        (token('{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}'), f"{INVALID}: ../secrets/a"),
        (token('{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}'), f"{INVALID}: a//b"),
        (token('{"v":"meta.k8s.io/v1","rv":1,"start":"a/"}'), f"{INVALID}: a/"),
        (token('{"v":"meta.k8s.io/v1","rv":1,"start":"/./a"}'), f"{INVALID}: /./a"),
    ],
)
def test_bad_tokens_are_explained_as_upstream_does(text, message):
    with pytest.raises(InvalidContinue) as caught:
        decode_continue(text, PODS)
    assert str(caught.value) == message


@given(st.text())
def test_any_text_is_a_token_or_refused(text):
    try:
        found = decode_continue(text, PODS)
    except InvalidContinue:
        return
    assert found.start.startswith(PODS)


@given(st.text(min_size=1).filter(lambda name: name not in (".", "..") and "/" not in name and name.isprintable()))
def test_any_name_survives(name):
    assert decode_continue(continue_after(PODS + name, PODS, 7), PODS).start == f"{PODS}{name}\0"
