import pytest

from pilothouse.authn.anonymous import Anonymous
from pilothouse.authn.authenticator import (
    EXTRA_SPACE_WARNING,
    AudienceAgnostic,
    Authenticated,
    InvalidCredentials,
    TokenUnion,
    Union,
)
from pilothouse.machinery.user import User


class Fixed:
    """Answers what it was told to."""

    def __init__(self, answer):
        self.answer = answer

    async def authenticate(self, request):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def authenticate_token(self, token, audiences):
        return await self.authenticate(None)


ALICE = Authenticated(User("alice", groups=("devs",)))
BOB = Authenticated(User("bob"))
REFUSED = InvalidCredentials("no")


async def test_first_identity_wins_even_after_a_refusal(make_request):
    found = await Union([Fixed(REFUSED), Fixed(None), Fixed(ALICE), Fixed(BOB)]).authenticate(make_request())
    assert found.user == User("alice", groups=("devs", "system:authenticated"))


async def test_refusal_is_never_anonymous(make_request):
    union = Union([Fixed(REFUSED), Fixed(InvalidCredentials("never")), Fixed(None)], Anonymous())
    with pytest.raises(InvalidCredentials, match=r"\[no, never\]"):
        await union.authenticate(make_request())


async def test_nothing_offered_is_anonymous_or_nobody(make_request):
    found = await Union([Fixed(None)], Anonymous()).authenticate(make_request())
    assert found.user == User("system:anonymous", groups=("system:unauthenticated",))
    assert await Union([Fixed(None)]).authenticate(make_request()) is None


async def test_anonymous_conditions_match_whole_paths(make_request):
    union = Union([], Anonymous(["/healthz"]))
    assert await union.authenticate(make_request(path="/healthz")) is not None
    for path in ("/healthz/", "/healthz/etcd", "/livez", "/"):
        assert await union.authenticate(make_request(path=path)) is None


@pytest.mark.parametrize(
    "user",
    [
        User("system:anonymous"),
        User("x", groups=("system:authenticated",)),
        User("x", groups=("system:unauthenticated",)),
    ],
)
async def test_group_is_not_added_twice_or_to_the_unauthenticated(make_request, user):
    found = await Union([Fixed(Authenticated(user))]).authenticate(make_request())
    assert found.user == user


async def test_credentials_do_not_travel_on(make_request):
    headers = (
        "Authorization: Bearer secret\nX-Remote-User: root\nX-Remote-Group: system:masters\nX-Remote-Uid: 1\n"
        "X-Remote-Extra-Scopes: all\nX-My-User: root\nX-My-Extra-A: b\nAccept: */*"
    )
    request = make_request(headers)
    await Union([Fixed(BOB)], proxy_headers=["X-My-User"], proxy_extra_prefixes=["X-My-Extra-"]).authenticate(request)
    assert set(request.headers) == {b"host", b"accept"}


async def test_extra_space_is_warned_about(make_request):
    found = await Union([], Anonymous()).authenticate(make_request("Authorization: Bearer  token"))
    assert found.warnings == (EXTRA_SPACE_WARNING,)
    found = await Union([], Anonymous()).authenticate(make_request("Authorization: Bearer token  more"))
    assert found.warnings == ()


async def test_token_union():
    assert await TokenUnion([Fixed(REFUSED), Fixed(BOB)]).authenticate_token("t", ()) is BOB
    assert await TokenUnion([Fixed(None)]).authenticate_token("t", ()) is None
    with pytest.raises(InvalidCredentials):
        await TokenUnion([Fixed(None), Fixed(REFUSED)]).authenticate_token("t", ())


@pytest.mark.parametrize(
    ("api", "asked", "got"),
    [
        (("api",), (), ()),
        (("api",), ("api",), ("api",)),
        (("api", "b"), ("b", "c", "api"), ("b", "api")),
        (("api",), ("c",), None),
        ((), ("c",), None),
    ],
)
async def test_audience_agnostic(api, asked, got):
    found = await AudienceAgnostic(api, Fixed(BOB)).authenticate_token("t", asked)
    assert (None if found is None else found.audiences) == got
