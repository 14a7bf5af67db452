"""What a token bucket lets through."""

from __future__ import annotations

from pilothouse.machinery.token_bucket import TokenBucket


def test_token_buckets() -> None:
    now = 0.0
    bucket = TokenBucket(2.0, 3, lambda: now)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    now = 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]
    now = 100.0
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
