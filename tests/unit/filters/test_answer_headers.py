from __future__ import annotations

from pilothouse.filters.answer_headers import with_answer_headers, with_cache_control

from .handlers import Ask, answering


async def test_audit_ids(ask: Ask) -> None:
    filter_ = with_answer_headers(answering())
    request = ask()
    response = await filter_(request)
    assert dict(response.headers)[b"audit-id"].decode() == request.audit_id
    given = await filter_(ask(audit_id="mine"))
    assert dict(given.headers)[b"audit-id"] == b"mine"
    long = await filter_(ask(audit_id="x" * 100))
    assert len(dict(long.headers)[b"audit-id"]) == 64


async def test_cache_control(ask: Ask) -> None:
    plain = await with_answer_headers(with_cache_control(answering()))(ask())
    assert (b"cache-control", b"no-cache, private") in plain.headers
    own = await with_answer_headers(with_cache_control(answering(headers=[(b"cache-control", b"public")])))(ask())
    assert [value for name, value in own.headers if name == b"cache-control"] == [b"public"]
    before = await with_answer_headers(answering())(ask())
    assert b"cache-control" not in dict(before.headers)


async def test_nothing_is_added_for_who_takes_the_connection_over(ask: Ask) -> None:
    switching = answering(101, upgrade=lambda transport, leftover: None)
    response = await with_answer_headers(with_cache_control(switching))(ask())
    assert response.headers == []
