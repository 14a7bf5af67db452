import pytest

from pilothouse.authz.always import AlwaysDeny
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorization_configuration import authorizers_from_modes, parse_configuration
from pilothouse.authz.authorizer import Decision
from pilothouse.authz.node.graph import Graph
from pilothouse.authz.rbac.index import Index
from pilothouse.authz.union import build
from pilothouse.machinery.user import User

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"


@pytest.fixture
def webhook(tmp_path):
    path = tmp_path / "webhook.kubeconfig"
    path.write_text("")
    return f"""
- type: Webhook
  name: corp
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    failurePolicy: Deny
    cacheUnauthorizedRequests: false
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {path}}}
"""


def test_good_file(webhook):
    found = parse_configuration((HEAD + "- {type: Node, name: node}\n- {type: RBAC, name: rbac}" + webhook).encode())
    assert [(entry.type, entry.name) for entry in found] == [("Node", "node"), ("RBAC", "rbac"), ("Webhook", "corp")]
    settings = found[2].webhook
    assert (settings.timeout, settings.authorized_ttl, settings.unauthorized_ttl) == (3.0, 300.0, 0.0)
    assert settings.deny_on_failure


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("  []", "authorizers: Required value: at least one authorization mode must be defined"),
        ("- {name: x}", "authorizers[0].type: Required value"),
        (
            "- {type: X, name: x}",
            'authorizers[0].type: Unsupported value: "X": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", '
            '"Node", "RBAC", "Webhook"',
        ),
        ("- {type: RBAC, name: rbac}\n- {type: RBAC, name: b}", 'authorizers[1].type: Duplicate value: "RBAC"'),
        ("- {type: RBAC, name: mine}", "expected name rbac for authorizer RBAC instead of mine"),
        (
            "- {type: RBAC, name: rbac, webhook: {}}",
            'authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook',
        ),
        ("- {type: Webhook, name: w}", "authorizers[0].webhook: Required value: required when type=Webhook"),
        (
            "- {type: Webhook, name: w, webhook: {timeout: 31s, authorizedTTL: -1s, failurePolicy: Maybe, "
            "subjectAccessReviewVersion: v1, connectionInfo: {type: KubeConfigFile, kubeConfigFile: rel}, "
            "matchConditions: [{expression: x}]}}",
            '[authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s, '
            'authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s, '
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are "
            "specified, "
            'authorizers[0].failurePolicy: Unsupported value: "Maybe": supported values: "NoOpinion", "Deny", '
            'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "rel": must be an absolute path, '
            'authorizers[0].matchConditions[0].expression: Invalid value: "x": compilation failed: ERROR: <input>:1:1: '
            "undeclared reference to 'x' (in container '')\n | x\n | ^]",
        ),
        (
            "- {type: RBAC, name: rbac, color: red}",
            "failed to load AuthorizationConfiguration from file: strict decoding error: unknown field "
            '"authorizers[0].color"',
        ),
    ],
)
def test_errors(text, error):
    with pytest.raises(ValueError) as caught:
        parse_configuration((HEAD + text).encode())
    assert str(caught.value) == error


def test_reload_keeps_required_types():
    with pytest.raises(ValueError, match=r"missing required types: \[Node\]"):
        parse_configuration((HEAD + "- {type: RBAC, name: rbac}").encode(), ["Node", "RBAC", "Webhook"])


async def test_built_chain():
    index, graph = Index(), Graph()
    union = build(authorizers_from_modes(["Node", "RBAC"]), index=index, graph=graph)
    kubelet = User("system:node:n1", groups=("system:nodes",))
    node = Attributes(kubelet, "get", resource="secrets", name="s", namespace="ns")
    assert await union.authorize(node) == (
        Decision.NO_OPINION, "node: no relationship found between node 'n1' and this object")  # fmt: skip
    master = Attributes(User("x", groups=("system:masters",)), "delete", resource="nodes")
    assert await union.authorize(master) == (Decision.ALLOW, "")
    denying = build(
        authorizers_from_modes(["Webhook", "AlwaysAllow"]), index=index, graph=graph, webhook=lambda entry: AlwaysDeny()
    )
    assert (await denying.authorize(node))[0] is Decision.ALLOW
    with pytest.raises(ValueError, match="at least one"):
        build([], index=index, graph=graph)
    with pytest.raises(ValueError, match="unknown authorization mode Webhook"):
        build(authorizers_from_modes(["Webhook"]), index=index, graph=graph)
