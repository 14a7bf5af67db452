import subprocess
import sys

import pytest

from pilothouse.storage.backends.sqlite.beacon import Beacon


@pytest.fixture
def join(tmp_path):
    opened = []

    def join():
        beacon = Beacon(str(tmp_path / "store-revision"))
        with beacon.joining():
            pass
        opened.append(beacon)
        return beacon

    yield join
    for beacon in opened:
        beacon.close()


def test_alone_there_is_nobody_to_hear_of(join):
    beacon = join()
    beacon.show(7)
    assert beacon.newest_foreign() == 0


def test_each_hears_of_the_others_only(join):
    first, second, third = join(), join(), join()
    first.show(5)
    second.show(9)
    third.show(7)
    assert [beacon.newest_foreign() for beacon in (first, second, third)] == [9, 7, 9]


def test_the_last_to_leave_leaves_nothing_behind(join, tmp_path):
    beacon = Beacon(str(tmp_path / "store-revision"))
    with beacon.joining():
        beacon.show(5)
    beacon.close()
    second = join()
    third = join()
    assert (second.newest_foreign(), third.newest_foreign()) == (0, 0)


def test_the_word_of_a_dead_process_is_taken_over(join, tmp_path):
    first = join()
    script = (
        "import os, sys; from pilothouse.storage.backends.sqlite.beacon import Beacon\n"
        "beacon = Beacon(sys.argv[1])\n"
        "with beacon.joining(): beacon.show(int(sys.argv[2]))\n"
        "os._exit(0)"
    )
    for revision in (5, 6, 7):
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "store-revision"), str(revision)], check=True)
        assert first.newest_foreign() == revision, "what a dead process acknowledged still counts"
    second = join()
    assert first.newest_foreign() == 7, "and goes on to count until its successor knows better"
    second.show(8)
    assert first.newest_foreign() == 8
