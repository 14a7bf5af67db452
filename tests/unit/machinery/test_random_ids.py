"""Random identifiers."""

from __future__ import annotations

import uuid

from pilothouse.machinery.random_ids import new_uid


def test_they_are_version_4_uuids_and_all_different() -> None:
    made = [new_uid() for _ in range(1000)]
    assert len(set(made)) == 1000
    for text in made:
        read = uuid.UUID(text)
        assert (str(read), read.version, read.variant) == (text, 4, uuid.RFC_4122)
