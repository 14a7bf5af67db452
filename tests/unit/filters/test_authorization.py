import asyncio
from types import SimpleNamespace

import pytest

from pilothouse.authz.authorizer import AuthorizationFailed, Decision
from pilothouse.authz.impersonation import Impersonation
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.filters.authorization import attributes_of, with_authorization
from pilothouse.filters.chain import ChainConfig, filters
from pilothouse.filters.impersonation import with_impersonation
from pilothouse.filters.request_metrics import RequestMetrics
from pilothouse.machinery.metrics import render
from pilothouse.machinery.user import User
from pilothouse.net.messages import Response
from pilothouse.net.request_head import HeaderBlock


class Noted:
    """Stands in for the audit event."""

    def __init__(self):
        self.annotations = {}
        self.times = {}
        self.acting = None
        self.status = None

    def annotate(self, key, value):
        self.annotations.setdefault(key, value)

    def note_impersonation(self, user, constraint):
        self.acting = (user.name, constraint)


class Authorizer:
    """Decides by a function; remembers what it was asked."""

    def __init__(self, decide):
        self.decide_by = decide
        self.asked = []

    async def authorize(self, attributes):
        self.asked.append(attributes)
        return self.decide_by(attributes)


def make(method="GET", target="/api/v1/namespaces/a/pods", headers=None):
    path, _, query = target.partition("?")
    headers = {name.lower().encode(): value.encode() for name, value in (headers or {}).items()}
    return SimpleNamespace(
        method=method,
        path=path,
        target=target.encode(),
        query=query,
        options=Query(query),
        info=resolve(method, path, Query(query)),
        user=User("jane", groups=("devs",)),
        headers=headers,
        block=HeaderBlock(headers, {}),
        header_values=lambda name: [headers[name]] if name in headers else [],
        audit=Noted(),
        authorized_by="",
    )


async def served(request):
    return Response(200, request.user.name.encode())


@pytest.mark.parametrize(
    ("decision", "status", "annotations"),
    [
        ((Decision.ALLOW, "by x"), 200, {"decision": "allow", "reason": "by x"}),
        ((Decision.DENY, "no"), 403, {"decision": "forbid", "reason": "no"}),
        ((Decision.NO_OPINION, ""), 403, {"decision": "forbid", "reason": ""}),
    ],
)
async def test_decisions(decision, status, annotations):
    request = make()
    response = await with_authorization(served, Authorizer(lambda attributes: decision))(request)
    assert response.status == status
    assert ((b"x-content-type-options", b"nosniff") in response.headers) == (status == 403)
    assert request.audit.annotations == {f"authorization.k8s.io/{key}": value for key, value in annotations.items()}


async def test_a_failure_is_a_500():
    def fail(attributes):
        raise AuthorizationFailed("webhook down")

    request = make()
    response = await with_authorization(served, Authorizer(fail))(request)
    assert (response.status, response.content_type) == (500, b"text/plain; charset=utf-8")
    assert response.body == b'Internal Server Error: "%s": webhook down\n' % request.target
    assert request.audit.annotations == {"authorization.k8s.io/reason": "internal error"}


@pytest.mark.parametrize(
    ("target", "by_field", "by_label"),
    [
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn", [("spec.nodeName", "n")], 0),
        ("/api/v1/pods?labelSelector=a%3Db,c", [], 2),
        ("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn", [("spec.nodeName", "n")], 0),
        ("/api/v1/watch/pods?fieldSelector=spec.nodeName%3Dn", [], 0),
        ("/api/v1/namespaces/a/pods/x?fieldSelector=spec.nodeName%3Dn", [], 0),
        ("/version?fieldSelector=spec.nodeName%3Dn", [], 0),
    ],
)
def test_selectors_are_passed_on(target, by_field, by_label):
    attributes = attributes_of(make(target=target))
    assert [(term.field, term.value) for term in attributes.field_selector] == by_field
    assert len(attributes.label_selector) == by_label


def test_selectors_that_cannot_be_read():
    attributes = attributes_of(make(target="/api/v1/pods?fieldSelector=a&labelSelector=%3D%3D"))
    assert attributes.field_selector_error
    assert attributes.label_selector_error
    assert (attributes.field_selector, attributes.label_selector) == ((), ())


async def test_impersonation_changes_the_user_and_takes_the_headers_off():
    allowed = Authorizer(lambda attributes: (Decision.ALLOW, ""))
    request = make(headers={"Impersonate-User": "joe", "Impersonate-Group": "ops"})
    response = await with_impersonation(served, Impersonation(allowed))(request)
    assert response.body == b"joe"
    assert request.user.groups == ("ops", "system:authenticated")
    assert request.headers == {}
    assert request.audit.acting == ("joe", "impersonate:user-info")


async def test_impersonation_without_the_right():
    nobody = Authorizer(lambda attributes: (Decision.NO_OPINION, ""))
    response = await with_impersonation(served, Impersonation(nobody))(make(headers={"Impersonate-User": "joe"}))
    assert response.status == 403


async def test_half_an_identity_is_a_400():
    response = await with_impersonation(served, Impersonation(Authorizer(None)))(make(headers={"Impersonate-Uid": "1"}))
    assert response.status == 400


async def test_requests_of_their_own_ask_nothing():
    authorizer = Authorizer(None)
    response = await with_impersonation(served, Impersonation(authorizer))(make(headers={"Accept": "x"}))
    assert (response.body, authorizer.asked) == (b"jane", [])


async def test_attempts_are_counted():
    metrics = AuthorizationMetrics()
    for decision in (Decision.ALLOW, Decision.DENY, Decision.NO_OPINION, Decision.ALLOW):
        authorizer = Authorizer(lambda attributes, decision=decision: (decision, ""))
        await with_authorization(served, authorizer, metrics)(make())
    await with_impersonation(
        served, Impersonation(Authorizer(lambda attributes: (Decision.ALLOW, "")), metrics.impersonation)
    )(make(headers={"Impersonate-User": "joe"}))
    await with_impersonation(
        served, Impersonation(Authorizer(lambda attributes: (Decision.DENY, "")), metrics.impersonation)
    )(make(headers={"Impersonate-User": "joe"}))
    page = render(metrics.instruments()).decode().splitlines()
    for line in (
        'authorization_attempts_total{result="allowed"} 2',
        'authorization_attempts_total{result="denied"} 1',
        'authorization_attempts_total{result="no-opinion"} 1',
        'authorization_duration_seconds_count{result="allowed"} 2',
        'apiserver_impersonation_attempts_total{mode="",decision="denied"} 1',
        'apiserver_impersonation_attempts_total{mode="user-info",decision="allowed"} 1',
        'apiserver_impersonation_authorization_attempts_total{mode="legacy",decision="denied"} 1',
        'apiserver_impersonation_authorization_attempts_total{mode="user-info",decision="allowed"} 2',
    ):
        assert line in page


def _either(allowed):
    return Decision.ALLOW if allowed else Decision.NO_OPINION


async def test_all_chains_of_a_server_remember_the_same():
    """Requests take turns between chains that are timed, recorded, or neither; refusals must not tell which."""
    allowed = ("impersonate", "joe")
    legacy = Authorizer(lambda asked: (_either((asked.verb, asked.name) == allowed), ""))
    config = ChainConfig(None, legacy, RequestMetrics())
    first, second = (dict(filters(config))["impersonation"](served) for _ in range(2))
    assert (await first(make(headers={"Impersonate-User": "joe"}))).status == 200
    for chain in (first, second):
        refused = await chain(make(headers={"Impersonate-User": "mary"}))
        assert b'cannot impersonate resource \\"users\\"' in refused.body


async def test_a_kept_question_is_asked_for_its_own_user_alone():
    class Asked:
        def __init__(self):
            self.users = []

        async def authorize(self, attributes):
            self.users.append(attributes.user.name)
            return Decision.ALLOW if attributes.user.name == "jane" else Decision.DENY, ""

    asked = Asked()
    handle = with_authorization(served, asked)
    first, again, other = make(), make(), make()
    again.info = other.info = first.info
    again.user = first.user
    other.user = User("joe")
    codes = [(await handle(request)).status for request in (first, again, other)]
    assert (codes, asked.users) == ([200, 200, 403], ["jane", "jane", "joe"])


async def test_an_authorizer_that_waits_is_waited_for():
    class Slow:
        async def authorize(self, attributes):
            await asyncio.sleep(0)
            if attributes.name == "broken":
                raise AuthorizationFailed("no answer")
            return (Decision.ALLOW if attributes.name == "open" else Decision.NO_OPINION), ""

    handle = with_authorization(served, Slow())
    answers = [await handle(make(target=f"/api/v1/namespaces/a/pods/{name}")) for name in ("open", "shut", "broken")]
    assert [answer.status for answer in answers] == [200, 403, 500]
