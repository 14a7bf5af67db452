"""Columns that kinds without columns of their own have."""

from pilothouse.apis.columns import PLAIN_COLUMNS


def test_what_was_never_created_shows_the_time_that_go_has_for_it() -> None:
    made = {"metadata": {"name": "a", "creationTimestamp": "2030-01-01T00:00:00Z"}}
    cells = [[column.cell(obj) for column in PLAIN_COLUMNS] for obj in (made, {"metadata": {}})]
    assert cells == [["a", "2030-01-01T00:00:00Z"], ["", "0001-01-01T00:00:00Z"]]
