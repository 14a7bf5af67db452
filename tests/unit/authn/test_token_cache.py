import asyncio

import pytest

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.token_cache import TokenCache
from pilothouse.machinery.user import User


class Backend:
    """Counts questions; may wait for a gate."""

    def __init__(self):
        self.asked = 0
        self.gate = None

    async def authenticate_token(self, token, audiences):
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if token == "wrong":
            raise InvalidCredentials("wrong")
        return None if token == "unknown" else Authenticated(User(token), audiences)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


async def test_success_is_kept_for_its_time():
    backend, clock = Backend(), Clock()
    cache = TokenCache(backend, 10.0, 0.0, clock=clock)
    assert await cache.lookup("t", ()) == (Authenticated(User("t")), 10.0)
    clock.now = 9.9
    assert await cache.authenticate_token("t", ()) == Authenticated(User("t"))
    assert backend.asked == 1
    clock.now = 10.0
    await cache.authenticate_token("t", ())
    assert backend.asked == 2


async def test_audiences_are_part_of_the_key():
    backend = Backend()
    cache = TokenCache(backend)
    for audiences in ((), ("a",), ("a", "b"), ("ab",), ("b", "a")):
        assert (await cache.authenticate_token("t", audiences)).audiences == audiences
    assert backend.asked == 5


@pytest.mark.parametrize(("failure_ttl", "cache_errors", "asked"), [(0.0, True, 2), (5.0, True, 1), (5.0, False, 2)])
async def test_errors(failure_ttl, cache_errors, asked):
    backend = Backend()
    cache = TokenCache(backend, 10.0, failure_ttl, cache_errors=cache_errors, clock=Clock())
    for _ in range(2):
        with pytest.raises(InvalidCredentials, match="wrong"):
            await cache.authenticate_token("wrong", ())
    assert backend.asked == asked


async def test_unknown_tokens_are_kept_only_with_a_failure_time():
    for failure_ttl, asked in ((0.0, 2), (5.0, 1)):
        backend = Backend()
        cache = TokenCache(backend, 10.0, failure_ttl, clock=Clock())
        assert [await cache.authenticate_token("unknown", ()) for _ in range(2)] == [None, None]
        assert backend.asked == asked


async def test_forgetting_reaches_lookups_under_way():
    backend, clock = Backend(), Clock()
    cache = TokenCache(backend, clock=clock)
    backend.gate = asyncio.Event()
    first = asyncio.ensure_future(cache.authenticate_token("t", ()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cache.forget_all()
    backend.gate.set()
    assert (await first).user.name == "t"
    await cache.authenticate_token("t", ())
    assert (backend.asked, cache.epoch) == (2, 1)


async def test_concurrent_questions_share_one_lookup_that_survives_its_first_asker():
    backend = Backend()
    backend.gate = asyncio.Event()
    cache = TokenCache(backend)
    askers = [asyncio.ensure_future(cache.authenticate_token("t", ())) for _ in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    askers[0].cancel()
    backend.gate.set()
    results = await asyncio.gather(*askers[1:])
    assert backend.asked == 1
    assert {found.user.name for found in results} == {"t"}


async def test_number_of_entries_is_bounded():
    cache = TokenCache(Backend(), max_entries=10, clock=Clock())
    for number in range(100):
        await cache.authenticate_token(f"token number {number}", ())
    assert len(cache._records) == 10
    assert all(b"token" not in key for key in cache._records), "tokens are not kept as such"
