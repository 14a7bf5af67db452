import pytest
import re2

from pilothouse.machinery.re2_patterns import LONGEST, _compile_large, compile_re2


def test_patterns_are_compiled_once_whether_long_or_short() -> None:
    for pattern in ("^a+$", "a|" * 2000 + "b"):
        assert compile_re2(pattern).search("a") is not None
        assert compile_re2(pattern) is compile_re2(pattern)


@pytest.mark.parametrize("pattern", ["a" * (LONGEST + 1), r"\PL" * 20_000, "x{1000}" * 5_000, r"\pL{999}"])
def test_patterns_that_would_hold_everybody_up_are_too_large(pattern: str) -> None:
    with pytest.raises(re2.error) as caught:
        compile_re2(pattern)
    assert caught.value.args[0].startswith(b"expression too large: ")


@pytest.mark.parametrize("pattern", [r"^\pL{1,90}$", "^([a-z]{1,30}){1,30}$", "^a{1,900}$", r"\pL?" * 101])
def test_what_grows_is_compiled(pattern: str) -> None:
    assert compile_re2(pattern).search("abc" if "a{" not in pattern else "aaa") is not None


def test_what_is_kept_of_many_patterns_is_bounded() -> None:
    """Each of these may take eight megabytes for the texts it has seen."""
    kept = {id(compile_re2(f"^([a-z]{{1,30}}){{1,30}}{number}$")) for number in range(100)}
    assert len(kept) <= 100
    assert _compile_large.cache_info().currsize <= 32
    small = compile_re2("^(a|b)*a(a|b|c){14}$")
    assert small.options.max_mem == 256 * 1024
