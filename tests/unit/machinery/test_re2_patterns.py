import pytest
import re2

from pilothouse.machinery.re2_patterns import LONGEST, compile_re2


def test_patterns_are_compiled_once_whether_long_or_short() -> None:
    for pattern in ("^a+$", "a|" * 2000 + "b"):
        assert compile_re2(pattern).search("a") is not None
        assert compile_re2(pattern) is compile_re2(pattern)


def test_patterns_that_would_hold_everybody_up_are_too_large() -> None:
    with pytest.raises(re2.error) as caught:
        compile_re2("a" * (LONGEST + 1))
    assert caught.value.args[0].startswith(b"expression too large: aaa")
