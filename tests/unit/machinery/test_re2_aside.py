"""Large patterns are another process's, and mean the same there."""

import pytest
import re2

from pilothouse.machinery import re2_aside, re2_patterns
from pilothouse.machinery.re2_aside import LargePattern
from pilothouse.machinery.re2_patterns import compile_re2
from pilothouse.machinery.workers import PATIENCE, NeedsTime

LARGE = r"\pL{100}"
TEXTS = ["", "a", "aäb1cc  ddddü", "x" * 300 + " " + "äö " * 500, "1 " * 9000, "\0\n"]


@pytest.fixture
def compiled_here(monkeypatch):
    """The patterns that are compiled in this process."""
    patterns = []

    class Watched:
        error = re2.error

        def compile(self, pattern, options):
            patterns.append((pattern, options.max_mem))
            return re2.compile(pattern, options)

    monkeypatch.setattr(re2_patterns, "re2", Watched())
    return patterns


@pytest.fixture
def process(monkeypatch):
    """A process of its own, which ends."""
    process = re2_aside._Process()
    monkeypatch.setattr(re2_aside, "_process", process)
    yield process
    process._end()


def spans(matches):
    return [(match.start(), match.end(), match.group()) for match in matches]


@pytest.mark.parametrize("pattern", [LARGE, r"^\pL{0,100}$", r"\b|\pL{90}|a*", r"\pL{90}|\pL|^", r"(\pL{50}){2}|1"])
def test_it_finds_what_one_here_finds(pattern):
    there, here = LargePattern(pattern), re2.compile(pattern)
    for text in TEXTS:
        for each in (text, text.encode()) if text.isascii() else (text,):
            assert spans(there.finditer(each)) == spans(here.finditer(each))
            first, wanted = there.search(each), here.search(each)
            assert (first and spans([first])) == (wanted and spans([wanted]))


@pytest.mark.parametrize(
    "pattern", [LARGE, r"(\pL\pN){90}", r"(\pL{9}){9}", r"\pL?" * 99, "[a-z]{900}" * 90, "a|" * 30_000]
)
def test_nothing_large_is_compiled_here(pattern, compiled_here):
    """But with so little memory that the attempt is over in some milliseconds."""
    assert compile_re2(pattern + "x").__class__ is LargePattern
    assert all(memory <= 512 * 1024 for _, memory in compiled_here)


def test_what_is_common_stays_here():
    for pattern in (
        r"^[\pL\pN_.-]+$",
        "^.{1,253}$",
        "^([a-z]{1,30}){1,30}$",
        "a|" * 2000 + "b",
        r"^\d{1,3}(\.\d{1,3}){3}$",
    ):
        assert compile_re2(pattern).__class__ is not LargePattern


@pytest.mark.parametrize("pattern", [r"\pL{100}(", r"\pL{100}[", r"\pL{100}{2", r"\pQ{100}" + r"\pL" * 40])
def test_what_is_wrong_is_told_as_here(pattern, process):
    try:
        re2.compile(pattern, re2_patterns._LARGE_OPTIONS)
        wanted = None
    except re2.error as error:
        wanted = error.args
    if wanted is None:
        compile_re2(pattern)
    else:
        with pytest.raises(re2.error) as caught:
            compile_re2(pattern)
        assert caught.value.args == wanted


def test_on_the_loop_it_takes_more_patience_than_there_is():
    large = LargePattern(LARGE)
    PATIENCE.left = 10_000
    try:
        with pytest.raises(NeedsTime):
            large.search("a")
    finally:
        PATIENCE.left = None


def test_a_process_that_has_died_is_made_good_here_and_then_by_another(process):
    large = LargePattern(LARGE)
    process._process.kill()
    process._process.wait()
    assert large.search("a" * 100).span() == (0, 100)
    assert process._process is None
    assert large.search(" " + "b" * 100).span() == (1, 101)
    assert process._process is not None


def test_nobody_gets_the_answer_to_a_question_that_was_given_up(process, monkeypatch):
    large = LargePattern(LARGE)

    def fail(connected, size):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(re2_aside, "received", fail)
        with pytest.raises(MemoryError):
            large.search("b" * 100)
    assert large.search("a") is None


def test_without_descriptors_it_is_compiled_here(process, monkeypatch):
    def none_left(*_):
        raise OSError("none left")

    monkeypatch.setattr(re2_aside.socket, "socketpair", none_left)
    assert compile_re2(r"\pL{101}").search("a" * 101) is not None
