import pytest

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Decision
from pilothouse.authz.impersonation import Impersonation, read_headers
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.user import User


class Rights:
    """Allows the listed (verb, resource, name) and remembers what was asked."""

    def __init__(self, *rights):
        self.rights = set(rights)
        self.asked = []

    async def authorize(self, attributes):
        resource = attributes.resource
        if attributes.subresource:
            resource += "/" + attributes.subresource
        question = (attributes.verb, resource, attributes.name)
        self.asked.append((*question, attributes.group, attributes.namespace, attributes.user))
        return (Decision.ALLOW if question in self.rights or "*" in self.rights else Decision.NO_OPINION), ""


BOB = User("bob", groups=("ops",))
LIST_PODS = Attributes(BOB, "list", resource="pods", namespace="ns")


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ("", None),
        ("Accept: x", None),
        ("Impersonate-User: jane", User("jane")),
        (
            "impersonate-user: jane\nImpersonate-Group: a\nImpersonate-Group: b\nImpersonate-Uid: 1\n"
            "Impersonate-Extra-Scopes: x\nImpersonate-Extra-Scopes: y\nImpersonate-Extra-Acme.com%2Fp: z",
            User("jane", "1", ("a", "b"), {"scopes": ("x", "y"), "acme.com/p": ("z",)}),
        ),
        ("Impersonate-User: \nImpersonate-Uid: ", None),
    ],
)
def test_headers(make_request, headers, wanted):
    request = make_request(headers)
    assert read_headers(request) == wanted
    if wanted is not None:
        assert not [name for name in request.headers if name.startswith(b"impersonate")]


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ("Impersonate-Group: w", 'Name:"", UID:"", Groups:[]string{"w"}, Extra:map[string][]string(nil)'),
        ("Impersonate-Uid: 1", 'Name:"", UID:"1", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        (
            "Impersonate-Extra-X: 1",
            'Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"x":[]string{"1"}}',
        ),
    ],
)
def test_headers_without_a_user(make_request, headers, shown):
    with pytest.raises(StatusError) as caught:
        read_headers(make_request(headers))
    assert caught.value.code == 400
    assert caught.value.message == f"requested &user.DefaultInfo{{{shown}}} without impersonating a user name"


@pytest.mark.parametrize(
    ("wanted", "groups"),
    [
        (User("jane"), ("system:authenticated",)),
        (User("jane", groups=("w",)), ("w", "system:authenticated")),
        (User("jane", groups=("system:authenticated",)), ("system:authenticated",)),
        (User("jane", groups=("system:unauthenticated",)), ("system:unauthenticated",)),
        (User("system:anonymous"), ("system:unauthenticated",)),
        (
            User("system:anonymous", groups=("system:authenticated",)),
            ("system:authenticated", "system:unauthenticated"),
        ),
        (
            User("system:serviceaccount:ns:default"),
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        (User("system:serviceaccount:bad"), ("system:authenticated",)),
        (User("system:node:n1"), ("system:nodes", "system:authenticated")),
        (User("system:node:n1", groups=("x",)), ("x", "system:authenticated")),
    ],
)
async def test_resulting_groups(wanted, groups):
    found = await Impersonation(Rights("*")).impersonate(wanted, LIST_PODS)
    assert found.user.groups == groups
    assert found.user.name == wanted.name


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (User("jane"), "impersonate-on:user-info:list"),
        (User("system:serviceaccount:ns:default"), "impersonate-on:serviceaccount:list"),
        (User("system:node:n1"), "impersonate-on:arbitrary-node:list"),
    ],
)
async def test_first_refusal_is_told(wanted, message):
    with pytest.raises(StatusError) as caught:
        await Impersonation(Rights()).impersonate(wanted, LIST_PODS)
    assert caught.value.message == (
        f'pods is forbidden: User "bob" cannot {message} resource "pods" in API group "" in the namespace "ns"'
    )


@pytest.mark.parametrize(
    ("wanted", "rights", "constraint"),
    [
        (
            User("jane", "1", ("a",), {"acme.io/x": ("v",)}),
            [
                ("impersonate-on:user-info:list", "pods", ""),
                ("impersonate:user-info", "users", "jane"),
                ("impersonate:user-info", "uids", "1"),
                ("impersonate:user-info", "groups", "a"),
                ("impersonate:user-info", "userextras/acme.io/x", "v"),
            ],
            "impersonate:user-info",
        ),
        (
            User("system:serviceaccount:ns:sa"),
            [
                ("impersonate-on:serviceaccount:list", "pods", ""),
                ("impersonate:serviceaccount", "serviceaccounts", "sa"),
            ],
            "impersonate:serviceaccount",
        ),
        (
            User("system:node:n1"),
            [("impersonate-on:arbitrary-node:list", "pods", ""), ("impersonate:arbitrary-node", "nodes", "n1")],
            "impersonate:arbitrary-node",
        ),
        (
            User("jane", "1", ("system:masters",), {"scopes": ("v",)}),
            [
                ("impersonate", "users", "jane"),
                ("impersonate", "uids", "1"),
                ("impersonate", "groups", "system:masters"),
                ("impersonate", "userextras/scopes", "v"),
            ],
            "",
        ),
        (User("system:node:n1"), [("impersonate", "users", "system:node:n1")], ""),
        (User("system:serviceaccount:ns:sa"), [("impersonate", "serviceaccounts", "sa")], ""),
    ],
)
async def test_every_right_is_needed(wanted, rights, constraint):
    found = await Impersonation(Rights(*rights)).impersonate(wanted, LIST_PODS)
    assert found.constraint == constraint
    for missing in rights:
        with pytest.raises(StatusError):
            await Impersonation(Rights(*(set(rights) - {missing}))).impersonate(wanted, LIST_PODS)


async def test_only_the_old_way_where_the_others_are_off():
    rights = Rights("*")
    found = await Impersonation(rights, constrained=False).impersonate(User("jane"), LIST_PODS)
    assert found.constraint == ""
    assert [asked[0] for asked in rights.asked] == ["impersonate"]


async def test_groups_and_namespaces_of_the_questions():
    rights = Rights("*")
    await Impersonation(rights).impersonate(User("system:serviceaccount:ns:sa"), LIST_PODS)
    assert rights.asked[1][:5] == ("impersonate:serviceaccount", "serviceaccounts", "sa", "authentication.k8s.io", "ns")
    rights = Rights(("impersonate", "users", "jane"))
    await Impersonation(rights).impersonate(User("jane"), LIST_PODS)
    assert rights.asked[-1][:5] == ("impersonate", "users", "jane", "", "")


async def test_associated_node():
    extra = {"authentication.kubernetes.io/node-name": ("n1",), "authentication.kubernetes.io/pod-name": ("p",)}
    agent = User("system:serviceaccount:ns:agent", extra=extra)
    action = Attributes(agent, "list", resource="pods")
    rights = Rights(("impersonate-on:associated-node:list", "pods", ""), ("impersonate:associated-node", "nodes", "*"))
    found = await Impersonation(rights).impersonate(User("system:node:n1"), action)
    assert found.user == User("system:node:n1", groups=("system:nodes", "system:authenticated"))
    assert found.constraint == "impersonate:associated-node"
    assert rights.asked[0][5].extra == {"authentication.kubernetes.io/associated-node-keys": tuple(sorted(extra))}
    for other in (User("system:node:n2"), User("system:node:n1", "uid")):
        with pytest.raises(StatusError):
            await Impersonation(rights).impersonate(other, action)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (User("jane", groups=("",)), "impersonating the empty string group is not allowed"),
        (User("jane", groups=("system:masters",)), "impersonating the system:masters group is not allowed"),
        (
            User("jane", extra={"scopes": ("x",)}),
            'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a '
            'domain-prefixed path (such as "acme.io/foo")',
        ),
        (User("jane", extra={"a.io/x": ("",)}), "impersonating the empty string value in extra is not allowed"),
        (User("jane", extra={"a.io/X": ("v",)}), 'impersonating a non-lowercase key in extra is not allowed: "a.io/X"'),
        (User("jane", extra={"": ("v",)}), "impersonating the empty string key in extra is not allowed"),
    ],
)
async def test_limits_of_the_constrained_way(wanted, reason):
    rights = Rights(("impersonate-on:user-info:list", "pods", ""), ("impersonate:user-info", "users", "jane"))
    with pytest.raises(StatusError) as caught:
        await Impersonation(rights).impersonate(wanted, LIST_PODS)
    assert caught.value.message.endswith(f": {reason}")


async def test_many_groups_are_asked_for_at_once():
    base = (("impersonate-on:user-info:list", "pods", ""), ("impersonate:user-info", "users", "jane"))
    groups = tuple("abcd")
    rights = Rights(*base, ("impersonate:user-info", "groups", "*"))
    await Impersonation(rights).impersonate(User("jane", groups=groups), LIST_PODS)
    assert len(rights.asked) == 3
    rights = Rights(*base, *(("impersonate:user-info", "groups", group) for group in groups))
    await Impersonation(rights).impersonate(User("jane", groups=groups), LIST_PODS)
    assert len(rights.asked) == 7
    with pytest.raises(StatusError):
        await Impersonation(Rights(*base, ("impersonate:user-info", "groups", "*"))).impersonate(
            User("jane", groups=groups[:3]), LIST_PODS
        )


async def test_way_that_worked_is_tried_first_and_refuses_first():
    rights = Rights(("impersonate", "users", "jane"))
    impersonation = Impersonation(rights)
    await impersonation.impersonate(User("jane"), LIST_PODS)
    assert len(rights.asked) == 2
    await impersonation.impersonate(User("jane"), LIST_PODS)
    assert len(rights.asked) == 3
    with pytest.raises(StatusError) as caught:
        await impersonation.impersonate(User("mary"), LIST_PODS)
    assert caught.value.message == (
        'users "mary" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope'
    )


async def test_failing_authorizer_refuses():
    class Failing:
        async def authorize(self, attributes):
            raise AuthorizationFailed("no answer")

    with pytest.raises(StatusError) as caught:
        await Impersonation(Failing()).impersonate(User("jane"), LIST_PODS)
    assert caught.value.message.endswith('in the namespace "ns": no answer')
