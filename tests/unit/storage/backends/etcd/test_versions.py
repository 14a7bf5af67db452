import pytest

from pilothouse.storage.backends.etcd.versions import answers_progress_requests


@pytest.mark.parametrize(
    ("version", "reliable"),
    [
        ("3.4.30", False),
        ("3.4.31", True),
        ("3.5.1", False),
        ("3.5.12", False),
        ("3.5.13", True),
        ("3.5.21", True),
        ("3.6.0", True),
        ("3.7.0-alpha.1", True),
        ("4.0.0", True),
        ("", False),
        ("new", False),
    ],
)
def test_progress(version, reliable):
    assert answers_progress_requests(version) is reliable
