"""Which failures of a webhook are worth another try."""

from types import SimpleNamespace

import pytest

from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authn.webhook_calls import WebhookFailed
from pilothouse.authn.webhook_kubeconfig import WebhookEndpoint
from pilothouse.net.outgoing import OutgoingError


class Client:
    """Answers, or fails, as told."""

    def __init__(self, outcome):
        self.outcome = outcome

    async def post(self, url, body, **more):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def answer(status, body=b"{}", **headers):
    return SimpleNamespace(status=status, body=body, headers=headers)


@pytest.mark.parametrize(
    ("outcome", "retry", "late"),
    [
        (OutgoingError('Post "https://x": dial tcp 127.0.0.1:1: connect: connection refused'), False, False),
        (OutgoingError('Post "https://x": read: connection reset by peer'), True, False),
        (OutgoingError('Post "https://x": EOF'), True, False),
        (OutgoingError('Post "https://x": context deadline exceeded', timed_out=True), False, True),
        (OSError("no such file"), False, False),
        (answer(400), False, False),
        (answer(403), False, False),
        (answer(429), True, False),
        (answer(500), True, False),
        (answer(502), False, False),
        (answer(503), False, False),
        (answer(503, **{"retry-after": "1"}), True, False),
        (answer(504), True, True),
    ],
)
async def test_retries(outcome, retry, late):
    calls = OutgoingCalls()
    calls._client = Client(outcome)
    with pytest.raises(WebhookFailed) as failure:
        await calls.post_to(WebhookEndpoint("https://x"), 1.0)({"kind": "TokenReview"})
    assert (failure.value.retry, failure.value.timed_out) == (retry, late)


@pytest.mark.parametrize(("body", "message"), [(b"no", "is not JSON"), (b"[]", "is not an object")])
async def test_answers_that_are_no_objects(body, message):
    calls = OutgoingCalls()
    calls._client = Client(answer(200, body))
    with pytest.raises(WebhookFailed, match=message):
        await calls.post_to(WebhookEndpoint("https://x"), 1.0)({})
