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


def left(depth: int) -> None:
    if depth:
        left(depth - 1)


def right(depth: int) -> None:
    if depth:
        right(depth - 1)


def test_frames_are_those_of_one_moment() -> None:
    """A thread is on one way or on the other, and would like to go on after a microsecond each time."""
    over, interval = threading.Event(), sys.getswitchinterval()

    def walk() -> None:
        while not over.is_set():
            left(100)
            right(100)

    walking = threading.Thread(target=walk)
    sys.setswitchinterval(1e-6)
    walking.start()
    try:
        assert walking.ident is not None
        seen: set[str] = set()
        while not {"left", "right"} <= seen:
            ways = {frame.f_code.co_name for frame in frames_of(walking.ident)} & {"left", "right"}
            assert len(ways) <= 1
            seen |= ways
        for _ in range(5000):
            names = [frame.f_code.co_name for frame in frames_of(walking.ident)]
            assert not {"left", "right"} <= {*names}
            assert names[-3:] == ["run", "_bootstrap_inner", "_bootstrap"]
    finally:
        sys.setswitchinterval(interval)
        over.set()
        walking.join()
