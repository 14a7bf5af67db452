import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.storage.encryption.aes import AESCBC, AESGCM, DerivedAESGCM
from pilothouse.storage.encryption.secretbox import Secretbox, SodiumSecretbox, derive_key, key_stream, make_secretbox
from pilothouse.storage.encryption.transforming import Identity, Prefixed, TransformFailed

KEY = bytes(range(32))
ALL = [AESCBC(KEY), AESGCM(KEY), DerivedAESGCM(KEY), Secretbox(KEY), make_secretbox(KEY)]
AUTHENTICATED = ALL[1:]


@pytest.mark.parametrize("transformer", ALL, ids=lambda each: type(each).__name__)
@given(data=st.binary(max_size=300))
@settings(max_examples=30)
def test_back_and_forth(transformer, data):
    stored = transformer.to_storage(data, b"/registry/secrets/a")
    assert transformer.from_storage(stored, b"/registry/secrets/a") == (data, False)
    assert len(data) < 8 or data not in stored
    assert stored != transformer.to_storage(data, b"/registry/secrets/a")


@pytest.mark.parametrize("transformer", AUTHENTICATED, ids=lambda each: type(each).__name__)
@given(data=st.binary(min_size=1, max_size=100), at=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=30)
def test_every_changed_bit_is_noticed(transformer, data, at, bit):
    stored = bytearray(transformer.to_storage(data, b"k"))
    stored[at % len(stored)] ^= 1 << bit
    with pytest.raises(TransformFailed):
        transformer.from_storage(bytes(stored), b"k")


@pytest.mark.parametrize("transformer", [AESGCM(KEY), DerivedAESGCM(KEY)], ids=lambda each: type(each).__name__)
def test_a_value_belongs_to_its_key(transformer):
    with pytest.raises(TransformFailed):
        transformer.from_storage(transformer.to_storage(b"x", b"/a"), b"/b")


@pytest.mark.parametrize("transformer", ALL, ids=lambda each: type(each).__name__)
@given(data=st.binary(max_size=80))
@settings(max_examples=50)
def test_nonsense_is_refused(transformer, data):
    try:
        transformer.from_storage(data, b"")
    except TransformFailed:
        return
    assert isinstance(transformer, AESCBC)  # not authenticated: padding may happen to look right


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "shorter than the required size"),
        (bytes(17), "not a multiple of the block size"),
        (bytes(16), r"invalid PKCS7 data \(empty or not padded\)"),
    ],
)
def test_cbc_errors(data, error):
    with pytest.raises(TransformFailed, match=error):
        AESCBC(KEY).from_storage(data, b"")


def test_secretbox_is_that_of_nacl():
    """The test vector of NaCl's own secretbox."""
    key = bytes.fromhex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389")
    nonce = bytes.fromhex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37")
    assert derive_key(key, nonce[:16]).hex() == "dc908dda0b9344a953629b733820778880f3ceb421bb61b91cbd4c3e66256ce4"
    sealed = bytes.fromhex(
        "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce8"
        "7b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0"
        "e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5"
    )
    plain, _ = Secretbox(key).from_storage(nonce + sealed, b"")
    assert plain.hex().startswith("be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd4")
    assert plain.hex().endswith("2f937763848645e0705")


def test_streams_of_any_length_agree():
    nonce = os.urandom(24)
    whole = key_stream(KEY, nonce, 1000)
    assert all(key_stream(KEY, nonce, size) == whole[:size] for size in (0, 1, 63, 64, 65, 128, 999))


def test_a_chain_writes_with_the_first_and_reads_with_all():
    chain = Prefixed([(b"new:", AESGCM(KEY)), (b"old:", AESCBC(KEY)), (b"", Identity())])
    stored = chain.to_storage(b"v", b"k")
    assert stored.startswith(b"new:")
    assert chain.from_storage(stored, b"k") == (b"v", False)
    assert chain.from_storage(b"old:" + AESCBC(KEY).to_storage(b"v", b"k"), b"k") == (b"v", True)
    assert chain.from_storage(b"plain", b"k") == (b"plain", True)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"a:short", "the stored data was shorter than the required size"),
        (b"b:" + bytes(30), "cipher: message authentication failed"),
        (b"k8s:enc:aescbc:v1:x:", "unknown"),
    ],
)
def test_what_no_link_of_a_chain_can_read(data, error):
    chain = Prefixed([(b"a:", AESGCM(KEY)), (b"b:", AESGCM(KEY)), (b"", Identity())], "unknown")
    expected = "no opinion"
    try:
        expected = chain.from_storage(data, b"")[0]
    except TransformFailed as failure:
        expected = str(failure)
    # Whatever does not look encrypted is plain to the last link.
    assert expected == (error if data.startswith(b"k8s:enc:") else data)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 5000])
def test_both_secretboxes_open_what_the_other_sealed(size):
    ours, sodium, data = Secretbox(KEY), make_secretbox(KEY), bytes(range(256)) * 20
    assert isinstance(sodium, SodiumSecretbox)
    assert sodium.from_storage(ours.to_storage(data[:size], b""), b"") == (data[:size], False)
    assert ours.from_storage(sodium.to_storage(data[:size], b""), b"") == (data[:size], False)


def test_without_the_library_our_own_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "nacl", None)
    assert isinstance(make_secretbox(KEY), Secretbox)
