import pytest

from pilothouse.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroups
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Decision, NotKnownYet, Union, forbidden
from pilothouse.machinery.user import User

ALICE = User("alice")


class Fixed:
    """Answers what it was told to."""

    def __init__(self, answer):
        self.answer = answer

    async def authorize(self, attributes):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Prompt(Fixed):
    """The same, and never waits."""

    def decide(self, attributes):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


NO, ALLOW, DENY = Decision.NO_OPINION, Decision.ALLOW, Decision.DENY


@pytest.mark.parametrize(
    ("chain", "answer"),
    [
        ([], (NO, "")),
        ([(NO, ""), (NO, "b"), (NO, "c")], (NO, "1: b\n2: c")),
        ([(NO, "a"), (ALLOW, "b"), (DENY, "c")], (ALLOW, "b")),
        ([(NO, "a"), (DENY, "c"), (ALLOW, "b")], (DENY, "c")),
        ([AuthorizationFailed("x"), (ALLOW, "b")], (ALLOW, "b")),
    ],
)
async def test_union(chain, answer):
    union = Union([(str(number), Fixed(item)) for number, item in enumerate(chain)])
    assert await union.authorize(Attributes(ALICE, "get")) == answer


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        ([AuthorizationFailed("x"), (NO, "b")], "x"),
        ([AuthorizationFailed("x"), AuthorizationFailed("y")], r"\[x, y\]"),
        ([AuthorizationFailed("x", DENY), (ALLOW, "b")], "x"),
    ],
)
async def test_failures_count_when_nobody_allows(chain, text):
    union = Union([(str(number), Fixed(item)) for number, item in enumerate(chain)])
    with pytest.raises(AuthorizationFailed, match=text):
        await union.authorize(Attributes(ALICE, "get"))


@pytest.mark.parametrize(
    "chain",
    [
        [],
        [(NO, ""), (NO, "b"), (NO, "c")],
        [(NO, "a"), (ALLOW, "b"), (DENY, "c")],
        [(NO, "a"), (DENY, "c"), (ALLOW, "b")],
    ],
)
async def test_who_need_not_wait_decides_the_same_at_once(chain):
    union = Union([(str(number), Prompt(item)) for number, item in enumerate(chain)])
    asked = Attributes(ALICE, "get")
    assert union.decide(asked) == await union.authorize(asked)


def test_who_waits_or_fails_decides_nothing_at_once():
    asked = Attributes(ALICE, "get")
    waiting = Union([("0", Prompt((NO, ""))), ("1", Fixed((ALLOW, "b")))])
    failing = Union([("0", Prompt(AuthorizationFailed("x"))), ("1", Prompt((ALLOW, "b")))])
    with pytest.raises(NotKnownYet):
        waiting.decide(asked)
    with pytest.raises(AuthorizationFailed):
        failing.decide(asked)


def test_union_needs_different_names():
    with pytest.raises(ValueError):
        Union([("a", AlwaysAllow()), ("a", AlwaysDeny())])


async def test_fixed_authorizers():
    question = Attributes(ALICE, "get")
    assert await AlwaysAllow().authorize(question) == (ALLOW, "")
    assert await AlwaysDeny().authorize(question) == (NO, "Everything is forbidden.")
    assert await PrivilegedGroups().authorize(question) == (NO, "")
    master = User("x", groups=("a", "system:masters"))
    assert await PrivilegedGroups().authorize(Attributes(master, "get")) == (ALLOW, "")
    rules = Union([("m", PrivilegedGroups()), ("a", AlwaysAllow()), ("d", AlwaysDeny())]).rules_for(ALICE, "x")()
    assert (len(rules.resource_rules), len(rules.path_rules), rules.incomplete) == (1, 1, False)


@pytest.mark.parametrize(
    ("attributes", "reason", "message", "details"),
    [
        (
            Attributes(ALICE, "list", resource="pods", namespace="x"),
            "",
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "x"',
            {"kind": "pods"},
        ),
        (
            Attributes(ALICE, "get", group="batch", resource="jobs", subresource="status", name="j"),
            "why",
            'jobs.batch "j" is forbidden: User "alice" cannot get resource "jobs/status" in API group "batch" '
            "at the cluster scope: why",
            {"name": "j", "group": "batch", "kind": "jobs"},
        ),
        (
            Attributes(User("<a&b>"), "get", resource_request=False, path="/y"),
            "",
            'forbidden: User "&lt;a&amp;b&gt;" cannot get path "/y"',
            {},
        ),
    ],
)
def test_forbidden(attributes, reason, message, details):
    error = forbidden(attributes, reason)
    assert (error.code, error.reason, error.message, error.details) == (403, "Forbidden", message, details)
