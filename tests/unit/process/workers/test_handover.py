import socket
from contextlib import closing

import pytest

from pilothouse.process.workers.handover import LATE_SECONDS, ArrivalSocket, Handover, SharingSocket, Turns


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        yield sock


def test_a_connection_arrives_in_the_hands_of_another(listening):
    handover, told = Handover(lambda: 0.0), []
    arrivals = ArrivalSocket(handover.theirs, listening.getsockname(), lambda: told.append(arrivals.received))
    sharing = SharingSocket(listening, handover.send)
    with socket.create_connection(listening.getsockname()) as client:
        with pytest.raises(BlockingIOError):
            sharing.accept()
        connection, address = arrivals.accept()
        with connection:
            assert address == client.getsockname()
            client.sendall(b"hello")
            assert connection.recv(5) == b"hello"
    assert told == [1]
    with pytest.raises(BlockingIOError):
        arrivals.accept()
    handover.close()
    assert arrivals.fileno() < 0


def test_what_nobody_takes_stays(listening):
    handover = Handover(lambda: 0.0)
    handover.theirs.close()
    sharing = SharingSocket(listening, handover.send)
    with socket.create_connection(listening.getsockname()) as client:
        connection, address = sharing.accept()
        with connection:
            assert address == client.getsockname()
    handover.close()


def test_what_a_process_does_not_take_can_be_taken_back(listening):
    now = 0.0
    with closing(Handover(lambda: now)) as handover, socket.create_connection(listening.getsockname()) as client:
        connection, _ = listening.accept()
        with connection:
            assert handover.send(connection)
        now += LATE_SECONDS / 2
        assert not handover.is_late
        now += LATE_SECONDS / 2
        assert handover.is_late
        (returned,) = handover.take_back()
        assert (handover.under_way, handover.is_late) == (0, False)
        with returned:
            assert returned.getpeername() == client.getsockname()
        assert list(handover.take_back()) == []


def test_a_process_that_takes_one_after_the_other_is_not_late(listening):
    now = 0.0
    with closing(Handover(lambda: now)) as handover, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            for _ in range(4):
                assert handover.send(connection)
        for count in range(1, 4):
            now += LATE_SECONDS * 0.9
            assert not handover.is_late
            handover.note_received(count)
        assert handover.under_way == 1
        now += LATE_SECONDS
        assert handover.is_late


def test_turns_pass_over_those_who_have_many_more():
    turns = Turns()
    assert [turns.next([0, 0, 0]) for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    assert [turns.next([100, 2, 3]) for _ in range(4)] == [1, 2, 1, 2]
    assert [turns.next([5, 0]) for _ in range(2)] == [1, 0]
    assert turns.next([7]) == 0


def test_turns_even_out_what_was_uneven():
    turns, loads = Turns(), [1000, 0, 0]
    for _ in range(5000):
        loads[turns.next(loads)] += 1
    assert max(loads) <= min(loads) * 1.25 + 65
