"""What is counted about authentication."""

import asyncio

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.metrics import AuthenticationMetrics, ReloadMetrics
from pilothouse.authn.token_cache import TokenCache
from pilothouse.machinery.metrics import render
from pilothouse.machinery.user import User


def shown(metrics):
    return [line for line in render(metrics.instruments()).decode().splitlines() if not line.startswith("#")]


def test_few_users_are_told_apart():
    metrics = AuthenticationMetrics()
    for name in ("admin", "jane@example.com", "joe@example.com", "jim", "system:serviceaccount:kube-system:default"):
        metrics.note_user(name)
    assert [line for line in shown(metrics) if line.startswith("authenticated")] == [
        'authenticated_user_requests{username="admin"} 1',
        'authenticated_user_requests{username="email_id"} 2',
        'authenticated_user_requests{username="other"} 1',
        'authenticated_user_requests{username="system:serviceaccount:kube-system:default"} 1',
    ]


def test_names_are_remembered_in_bounds():
    metrics = AuthenticationMetrics()
    for number in range(10_000):
        metrics.note_user(f"user-{number}")
    assert 'authenticated_user_requests{username="other"} 10000' in shown(metrics)
    assert len(metrics._by_name) <= 4096


async def test_the_cache_of_tokens_is_counted():
    class Backend:
        async def authenticate_token(self, token, audiences):
            if token == "bad":
                raise InvalidCredentials("no")
            return Authenticated(User("alice"))

    metrics = AuthenticationMetrics()
    cache = TokenCache(Backend(), metrics=metrics.cache)
    for token in ("good", "good", "good", "bad"):
        await asyncio.gather(cache.authenticate_token(token, ()), return_exceptions=True)
    page = shown(metrics)
    for line in (
        'authentication_token_cache_request_total{status="hit"} 2',
        'authentication_token_cache_request_total{status="miss"} 2',
        'authentication_token_cache_fetch_total{status="ok"} 1',
        'authentication_token_cache_fetch_total{status="error"} 1',
        'authentication_token_cache_active_fetch_count{status="in_flight"} 0',
        'authentication_token_cache_active_fetch_count{status="blocked"} 0',
    ):
        assert line in page


def test_only_the_present_configuration_is_in_force():
    reloads = ReloadMetrics("authentication", "authentication configuration", "server")
    reloads.in_force(b"old")
    reloads.in_force(b"new")
    reloads.note("success")
    page = shown(reloads)
    assert sum("last_config_info" in line for line in page) == 1
    assert any(line.startswith("apiserver_authentication_config_controller_automatic_reloads_total{") for line in page)
