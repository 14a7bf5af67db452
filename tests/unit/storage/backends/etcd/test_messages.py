import contextlib

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.protobuf import ProtobufError
from pilothouse.machinery.protobuf.plain_messages import decode, encode
from pilothouse.storage.backends.contract import KeyValue
from pilothouse.storage.backends.etcd import messages

numbers = st.integers(0, 2**63 - 1)
keys = st.text(max_size=40)
READERS = (
    messages.read_range,
    messages.read_txn,
    messages.read_watch,
    messages.read_lease,
    messages.read_leases,
    messages.read_granted_seconds,
    messages.read_status,
)


def key_value(item, version=1):
    fields = {1: item.key, 2: item.created, 3: item.revision, 4: version, 5: item.value, 6: 7}
    return encode(fields)


items = st.builds(KeyValue, keys, st.binary(max_size=60), numbers, numbers)


@given(st.lists(items, max_size=4), numbers, st.booleans(), numbers)
def test_ranges(found, revision, more, count):
    parts = [encode({1: encode({1: 5, 2: 6, 3: revision, 4: 8})})]
    parts += [encode({2: key_value(item)}) for item in found]
    parts.append(encode({3: int(more), 4: count}))
    answer = messages.read_range(b"".join(parts))
    # An empty message is left out by this encoder, as no encoder of etcd does.
    assert (answer.items, answer.more, answer.count) == (found, more, count)
    assert answer.revision == revision


@given(items, items, numbers)
def test_watches(item, previous, revision):
    put = encode({2: key_value(item), 3: key_value(previous)})
    deletion = encode({1: 1, 2: key_value(item)})
    answer = messages.read_watch(encode({1: encode({3: revision})}) + encode({11: put}) + encode({11: deletion}))
    changed, deleted = answer.changes
    assert (changed.key, changed.value, changed.revision, changed.previous) == (
        item.key,
        item.value,
        item.revision,
        previous,
    )
    assert changed.created == (item.created == item.revision)
    assert (deleted.key, deleted.value, deleted.created) == (item.key, None, False)


@given(items, st.integers(1, 2**63 - 1), st.integers(0, 1))
def test_changes_that_are_known_are_told_by_the_header(item, revision, more):
    header = encode({1: encode({1: 2**64 - 1, 2: 6, 3: revision, 4: 8})})
    events = encode({11: encode({2: key_value(item)})})
    assert messages.has_only_known(header + events, revision + more)
    assert not messages.has_only_known(header + events, revision - 1)
    for flag in (3, 4, 5, 7):
        assert not messages.has_only_known(header + encode({flag: 1}) + events, revision)
    assert not messages.has_only_known(header, revision)
    assert not messages.has_only_known(encode({1: encode({1: 5})}) + events, revision)


@given(st.binary(max_size=60), numbers)
def test_whatever_comes_in_is_known_or_not(data, revision):
    assert messages.has_only_known(data, revision) in (True, False)


@given(numbers, st.integers(0, 2**64 - 1))
def test_a_write_that_was_carried_out(revision, member):
    header = encode({1: encode({1: member, 2: member, 3: revision, 4: 8})})
    for answers in (b"", encode({3: encode({2: header})})):
        assert messages.read_txn(header + encode({2: 1}) + answers) == messages.TxnAnswer(revision, True)
    assert messages.read_txn(header) == messages.TxnAnswer(revision, False)
    assert messages.read_revision(header) == revision


def test_a_refused_watch():
    answer = messages.read_watch(encode({4: 1, 5: 17, 6: "why"}))
    assert (answer.canceled, answer.compacted, answer.reason, answer.fragment) == (True, 17, "why", False)


@given(st.sampled_from(READERS), st.binary(max_size=200))
def test_whatever_comes_in_the_only_exception_is_ours(read, data):
    with contextlib.suppress(ProtobufError):
        read(data)


@given(keys.filter(bool), st.binary(max_size=20), numbers, numbers)
def test_guarded_writes(key, value, expected, lease):
    name = key.encode("utf-8", "surrogatepass")
    request = decode(messages.put_if_request(name, value, expected, lease))
    compare, put, failure = (decode(request[number][0]) for number in (1, 2, 3))
    assert (compare[2], compare[3], compare.get(6, [0])) == ([2], [name], [expected])
    written = decode(put[2][0])
    assert (written[1], written.get(2, [b""]), written.get(3, [0])) == ([name], [value], [lease])
    assert decode(failure[1][0])[1] == [name]


def test_ends_of_ranges():
    assert messages.prefix_range("/a/") == (b"/a/", b"/a0")
    assert messages.prefix_range("/a/", "/a/b\0") == (b"/a/b\0", b"/a0")
    assert messages.prefix_range("") == (b"\0", b"\0")
    assert messages.range_end(b"a\xff") == b"b"
