import gc
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from pilothouse.machinery.thread_frames import MOST_FRAMES, frames_of


def at_depth(depth: int, do: Callable[[], None]) -> None:
    if depth:
        at_depth(depth - 1, do)
    else:
        do()


@pytest.fixture
def waiting() -> Iterator[Callable[[int], threading.Thread]]:
    def start(depth: int) -> threading.Thread:
        there = threading.Event()

        def wait() -> None:
            there.set()
            end.wait()

        thread = threading.Thread(target=at_depth, args=(depth, wait))
        threads.append(thread)
        thread.start()
        there.wait()
        return thread

    end, threads = threading.Event(), list[threading.Thread]()
    yield start
    end.set()
    for thread in threads:
        thread.join()


def test_frames_come_innermost_first(waiting: Callable[[int], threading.Thread]) -> None:
    thread = waiting(5)
    assert thread.ident is not None
    names = [frame.f_code.co_name for frame in frames_of(thread.ident)]
    assert names[-3:] == ["run", "_bootstrap_inner", "_bootstrap"]
    assert names.count("at_depth") == 6
    assert names.index("wait") < names.index("at_depth")


def test_no_more_frames_than_anybody_reads(waiting: Callable[[int], threading.Thread]) -> None:
    thread = waiting(300)
    assert thread.ident is not None
    assert len(frames_of(thread.ident)) == MOST_FRAMES


def test_a_thread_that_is_not_there_has_none() -> None:
    assert frames_of(-1) == []


@pytest.mark.parametrize("collecting", [True, False])
def test_looking_for_cycles_stays_as_it_was(collecting: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        assert frames_of(threading.get_ident())
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()


def test_the_lock_is_not_given_away_between_two_frames(waiting: Callable[[int], threading.Thread]) -> None:
    """Others would like to go on after a microsecond each time, and cannot before all frames are there."""
    thread = waiting(100)
    assert thread.ident is not None
    counted, over = [0], threading.Event()

    def count() -> None:
        while not over.is_set():
            counted[0] += 1

    counting = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    counting.start()
    try:
        assert counting.ident is not None
        for _ in range(2000):
            names = [frame.f_code.co_name for frame in frames_of(counting.ident)]
            assert names[-4:] == ["count", "run", "_bootstrap_inner", "_bootstrap"]
    finally:
        sys.setswitchinterval(interval)
        over.set()
        counting.join()
