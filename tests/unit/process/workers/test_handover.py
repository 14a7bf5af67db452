import socket

import pytest

from pilothouse.process.workers.handover import ArrivalSocket, SharingSocket, Turns, hand_over, handover_pair


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        yield sock


def test_a_connection_arrives_in_the_hands_of_another(listening):
    ours, theirs = handover_pair()
    arrivals = ArrivalSocket(theirs, listening.getsockname())
    sharing = SharingSocket(listening, lambda connection: hand_over(ours, connection))
    with socket.create_connection(listening.getsockname()) as client:
        with pytest.raises(BlockingIOError):
            sharing.accept()
        connection, address = arrivals.accept()
        with connection:
            assert address == client.getsockname()
            client.sendall(b"hello")
            assert connection.recv(5) == b"hello"
    assert arrivals.received == 1
    with pytest.raises(BlockingIOError):
        arrivals.accept()
    ours.close()
    arrivals.close()
    assert arrivals.fileno() < 0


def test_what_nobody_takes_stays(listening):
    ours, theirs = handover_pair()
    theirs.close()
    sharing = SharingSocket(listening, lambda connection: hand_over(ours, connection))
    with socket.create_connection(listening.getsockname()) as client:
        connection, address = sharing.accept()
        with connection:
            assert address == client.getsockname()
    ours.close()


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
