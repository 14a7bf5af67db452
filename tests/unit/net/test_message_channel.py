import asyncio
import socket

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.message_channel import MessageChannel, encode_message

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(max_size=70_000),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=6), st.lists(st.integers(1, 50_000), max_size=6))
def test_messages_come_whole_and_in_order_however_they_are_cut(messages, cuts):
    async def cut_and_join():
        received = []
        channel = MessageChannel(received.append, lambda: None)
        data = b"".join(map(encode_message, messages))
        for cut in cuts:
            channel.data_received(data[:cut])
            data = data[cut:]
        channel.data_received(data)
        return received

    assert asyncio.run(cut_and_join()) == messages


async def test_both_ends_speak_and_each_hears_of_the_end():
    ours, theirs = socket.socketpair()
    ended, heard, received = asyncio.Event(), asyncio.Event(), []

    def take(message):
        received.append(message)
        heard.set()

    one = MessageChannel(take, lambda: None)
    other = MessageChannel(lambda message: other.send(("seen", message)), ended.set)
    await one.start(ours)
    await other.start(theirs)
    one.send(b"x" * 1_000_000)
    await heard.wait()
    assert received == [("seen", b"x" * 1_000_000)]
    one.send("last")
    one.close()
    await ended.wait()
    other.send("into the void")
    assert not other.is_open
    assert not one.is_open
