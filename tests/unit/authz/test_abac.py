import json

import pytest

from pilothouse.authz.abac import ABACAuthorizer, Policy, parse_policies
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision
from pilothouse.machinery.user import User

HEAD = {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy"}


def line(**spec):
    return json.dumps({**HEAD, "spec": spec})


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        (line(user="alice", namespace="*", resource="pods"), Policy("alice", namespace="*", resource="pods")),
        (line(user="*", nonResourcePath="/x"), Policy(group="system:authenticated", path="/x")),
        (line(group="*", readonly=True), Policy(group="system:authenticated", read_only=True)),
        (
            '{"user":"bob"}',
            Policy("bob", namespace="*", resource="*", api_group="*", path="*"),
        ),
        ('{"resource":"pods"}', Policy(group="system:authenticated", namespace="*", resource="pods", api_group="*")),
    ],
)
def test_lines(text, policy):
    assert parse_policies(f"# comment\n\n{text}\n".encode(), "f") == (policy,)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"user": 7}', '{"user": "a", "readonly": 0}', line(user="a", readonly="false"), line(user=0)]
)
def test_bad_lines_are_named(text):
    with pytest.raises(ValueError, match="error reading policy file f, line 2: "):
        parse_policies(f"#\n{text}".encode(), "f")


POLICIES = "\n".join(
    [
        line(user="alice", namespace="ns", resource="pods", apiGroup=""),
        line(user="bob", readonly=True, namespace="*", resource="*", apiGroup="*"),
        line(group="ops", nonResourcePath="/logs/*"),
        line(user="carol", group="admins", namespace="*", resource="*", apiGroup="*"),
    ]
)


@pytest.fixture
def authorizer(tmp_path):
    path = tmp_path / "policy.jsonl"
    path.write_text(POLICIES)
    return ABACAuthorizer(str(path))


@pytest.mark.parametrize(
    ("user", "verb", "target", "allowed"),
    [
        (User("alice"), "delete", {"resource": "pods", "namespace": "ns"}, True),
        (User("alice"), "get", {"resource": "pods", "namespace": "other"}, False),
        (User("alice"), "get", {"resource": "deployments", "namespace": "ns", "group": "apps"}, False),
        (User("bob"), "watch", {"resource": "nodes"}, True),
        (User("bob"), "update", {"resource": "nodes"}, False),
        (User("x", groups=("ops",)), "post", {"path": "/logs/a", "resource_request": False}, True),
        (User("x", groups=("ops",)), "get", {"path": "/metrics", "resource_request": False}, False),
        (User("carol"), "get", {"resource": "pods"}, False),
        (User("carol", groups=("admins",)), "get", {"resource": "pods"}, True),
    ],
)
async def test_decisions(authorizer, user, verb, target, allowed):
    answer = await authorizer.authorize(Attributes(user, verb, **target))
    assert answer == ((Decision.ALLOW, "") if allowed else (Decision.NO_OPINION, "No policy matched."))


def test_rules(authorizer):
    assert authorizer.rules_for(User("alice"), "ns")().resource_rules == ((("*",), ("",), ("pods",), ()),)
    assert authorizer.rules_for(User("bob"), "x")().resource_rules[0].verbs == ("get", "list", "watch")
    assert authorizer.rules_for(User("alice"), "x")().resource_rules == ()
