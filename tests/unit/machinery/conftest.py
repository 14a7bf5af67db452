import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def shallow_stack() -> Iterator[None]:
    """Python's usual recursion limit, whatever other tests have needed before."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)
