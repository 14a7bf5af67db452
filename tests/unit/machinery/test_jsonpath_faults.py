"""Faults of JSONPath templates, in Go's words; all of these were asked of kube-apiserver."""

import pytest

from pilothouse.machinery.jsonpath_faults import fault_of


@pytest.mark.parametrize(
    "path",
    [
        "spec.validations[0].expression", ".a..b", "$.a[*]", "a['b.c'].d", "[0:2:1]", "[-1]", "['a','b']", "1.5", "-2",
        "..", "range .items", "true", "é", "'quoted \\' text'", "a b", "[?(@.a == 'b)')]", "[?(@.x)]", "a}b{c", ".\\.a",
        ".*", "@", "a\x07b*", "a[,]", "[?(a=b)].c", "", "1", "$",
    ],
)  # fmt: skip
def test_sound_paths(path: str) -> None:
    assert fault_of(f"{{{path}}}") == ""


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("*", "unrecognized character in action: U+002A '*'"),
        ("self.a > 1", "unrecognized character in action: U+003E '>'"),
        ("\\.a", "unrecognized character in action: U+005C '\\'"),
        ("\x07", "unrecognized character in action: U+0007"),
        ("-a", "cannot parse number -"),
        ("1.2.3.4", "cannot parse number 1.2.3.4"),
        ("a....b", "invalid multiple recursive descent"),
        ("a[0", "unterminated array"),
        ("a[b]", "invalid array index b"),
        ("a[-]", "array index - is not a number"),
        ("a[1:99999999999999999999]", "array index 99999999999999999999 is not a number"),
        ("a['b[c']", "unterminated array"),
        ("a[0,x]", "invalid array index x"),
        ("[?(@.a", "unterminated filter"),
        ("[?(@.a)x", "unclosed array expect ]"),
        ("[?(@.a == *)]", "unrecognized character in action: U+002A '*'"),
        ("'a", "unterminated quoted string"),
        ("'a\\q'", "unquote string 'a\\q' error invalid syntax"),
        ("a\nb", "unclosed action"),
        ("/a", "unrecognized character in action: U+002F '/'"),
    ],
)
def test_faults(path: str, fault: str) -> None:
    assert fault_of(f"{{{path}}}") == fault


@pytest.mark.parametrize("piece", ["[", "'", "[?(", "a,", "..", "\\", "[0,", "{", "-", "9", "]", "=", "(", ")"])
def test_long_ones_are_read_in_one_go(piece: str) -> None:
    """Quadratic time would be minutes."""
    text = piece * 300_000
    fault_of(f"{{{text}}}")
    fault_of(f"{{[{text}]}}")
    fault_of(f"{{[?({text})]}}")
