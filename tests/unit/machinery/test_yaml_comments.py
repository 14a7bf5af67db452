from __future__ import annotations

from pilothouse.machinery.yaml_comments import read_comments, write_comments

TEXT = """\
# top
a: 1  # one
b:  # block
  # inside
  c: |
    # no comment
    text
  d: "x # y"  # quoted
list:
# item
- name: n  # named
# end
"""


def test_comments_are_found_at_their_fields() -> None:
    found = read_comments(TEXT)
    assert found.above == {("a",): ["# top"], ("b", "c"): ["# inside"], ("list", 0, "name"): ["# item"]}
    assert found.behind == {("a",): "# one", ("b",): "# block", ("b", "d"): "# quoted", ("list", 0, "name"): "# named"}
    assert found.last == ["# end"]


def test_comments_without_a_field_go_to_the_top() -> None:
    text = write_comments("b:\n  e: 1\na: 2\n", read_comments(TEXT))
    assert text.splitlines() == [
        "# inside", "# item", "# quoted", "# named", "b:  # block", "  e: 1", "# top", "a: 2  # one", "# end",
    ]  # fmt: skip
