"""Who may do what: modes, webhooks and reviews against a running server, and a search for ways around them."""

from __future__ import annotations

import random
import socket
from ssl import create_default_context
from urllib.parse import quote

import orjson
import pytest

from pilothouse.testing.waiting import until

ROLES = "/apis/rbac.authorization.k8s.io/v1"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def as_user(name, *groups):
    headers = {"Impersonate-User": name}
    if groups:
        headers["Impersonate-Group"] = groups[0]
    return headers


def grant(server, namespace, user, rules):
    """A role and its binding for one user."""
    role = {"metadata": {"name": f"for-{user}"}, "rules": rules}
    assert server.call("POST", f"{ROLES}/namespaces/{namespace}/roles", role)[0] == 201
    binding = {
        "metadata": {"name": f"for-{user}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"for-{user}"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }
    assert server.call("POST", f"{ROLES}/namespaces/{namespace}/rolebindings", binding)[0] == 201


def test_a_role_opens_exactly_what_it_says(server):
    namespace = server.namespace("authz-role")
    grant(server, namespace, "reader", [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}])
    path, me = f"/api/v1/namespaces/{namespace}/secrets", as_user("reader")
    assert server.call("GET", f"{path}/none", headers=me)[0] == 404
    code, _, answer = server.call("GET", path, headers=me)
    assert code == 403
    assert answer["message"] == (
        'secrets is forbidden: User "reader" cannot list resource "secrets" in API group "" in the namespace '
        f'"{namespace}"'
    )
    assert server.call("GET", "/api/v1/namespaces/default/secrets/none", headers=me)[0] == 403


@pytest.mark.parametrize(
    "selector",
    [
        r"metadata.namespace!=x\,metadata.name=mine",
        "metadata.name!=mine",
        r"metadata.name=mine\,x",
        "metadata.namespace!=x",
    ],
)
def test_a_right_to_one_name_lists_only_that_name(server, selector):
    """Selectors that only look like naming one object must not be taken for one."""
    namespace = server.namespace("authz-names")
    if server.call("GET", f"{ROLES}/namespaces/{namespace}/roles/for-one")[0] == 404:
        rules = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["list", "watch"]}]
        grant(server, namespace, "one", rules)
        for name in ("mine", "other"):
            server.call("POST", f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{namespace}/secrets?fieldSelector="
    code, _, answer = server.call("GET", path + "metadata.name%3Dmine", headers=as_user("one"))
    assert (code, [item["metadata"]["name"] for item in answer["items"]]) == (200, ["mine"])
    assert server.call("GET", path + quote(selector, safe=""), headers=as_user("one"))[0] == 403
    assert server.call("GET", path + f"&fieldSelector={quote('metadata.name=mine')}", headers=as_user("one"))[0] == 403


def test_nobody_grants_what_they_do_not_hold(server):
    namespace = server.namespace("authz-escalation")
    rules = [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "update", "get"]}]
    grant(server, namespace, "climber", rules)
    more = {"metadata": {"name": "more"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
    code, _, answer = server.call("POST", f"{ROLES}/namespaces/{namespace}/roles", more, as_user("climber"))
    assert code == 403
    assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}' in answer["message"]
    binding = {
        "metadata": {"name": "more"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "climber"}],
    }
    path = f"{ROLES}/namespaces/{namespace}/rolebindings"
    assert server.call("POST", path, binding, as_user("climber"))[0] == 403
    own = {"metadata": {"name": "own"}, "rules": rules}
    assert server.call("POST", f"{ROLES}/namespaces/{namespace}/roles", own, as_user("climber"))[0] == 201
    path = f"{ROLES}/namespaces/{namespace}/roles"
    named = {**rules[0], "resources": ["roles"], "resourceNames": ["chosen"], "verbs": ["escalate"]}
    grant(server, namespace, "chooser", [*rules, named])
    chosen = {**more, "metadata": {"name": "chosen"}}
    assert server.call("POST", path, chosen, as_user("chooser"))[0] == 403
    assert server.call("PUT", f"{path}/chosen", chosen, as_user("chooser"))[0] == 201
    assert server.call("PUT", f"{path}/more", more, as_user("chooser"))[0] == 403
    own["rules"] = more["rules"]
    assert server.call("PUT", f"{ROLES}/namespaces/{namespace}/roles/own", own, as_user("climber"))[0] == 403


def test_impersonation_needs_a_user_and_the_right(server):
    code, _, answer = server.call("GET", "/version", headers={"Impersonate-Group": "system:masters"})
    assert (code, answer["reason"]) == (400, "BadRequest")
    headers = as_user("jane")
    review = {"spec": {"resourceAttributes": {"verb": "impersonate", "resource": "users", "name": "admin"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert server.call("POST", path, review, headers)[2]["status"] == {"allowed": False}


def test_rules_review_lists_what_a_role_gives(server):
    namespace = server.namespace("authz-rules")
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]}
    grant(server, namespace, "lister", [rule])
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    status = server.call("POST", path, {"spec": {"namespace": namespace}}, as_user("lister"))[2]["status"]
    assert {"verbs": ["get", "list"], "apiGroups": ["apps"], "resources": ["deployments"]} in status["resourceRules"]
    assert status["incomplete"] is False


def test_nodes_read_what_their_pods_need(host, secured):
    data, flags = secured
    server = host(data, *flags[:-1], "Node,RBAC")
    namespace = server.namespace("authz-node")
    for name in ("used", "other"):
        server.call("POST", f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}})
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "secret": {"secretName": "used"}}],
        },
    }
    assert server.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod)[0] == 201
    node = as_user("system:node:n1", "system:nodes")
    path = f"/api/v1/namespaces/{namespace}/secrets"
    until(lambda: server.call("GET", f"{path}/used", headers=node)[0] == 200)
    code, _, answer = server.call("GET", f"{path}/other", headers=node)
    assert code == 403
    assert "no relationship found between node 'n1' and this object" in answer["message"]
    assert server.call("GET", f"{path}/used", headers=as_user("system:node:n2", "system:nodes"))[0] == 403


def review(path, body):
    user = body["spec"].get("user")
    status = {"allowed": user == "friend"} if user != "enemy" else {"allowed": False, "denied": True}
    return 200, {**body, "status": {**status, "reason": "said the webhook"}}


def test_webhook_mode(host, secured, start_peer, tmp_path):
    peer = start_peer(review)
    data, flags = secured
    config = peer.kubeconfig(tmp_path / "webhook.kubeconfig", "/authorize")
    server = host(
        data,
        *flags[:-1],
        "Webhook",
        f"--authorization-webhook-config-file={config}",
        "--authorization-webhook-version=v1",
    )
    for _ in range(2):
        assert server.call("GET", "/api/v1/pods", headers=as_user("friend"))[0] == 200
    code, _, answer = server.call("GET", "/api/v1/pods", headers=as_user("enemy"))
    assert code == 403
    assert answer["message"].endswith(": said the webhook")
    asked = [body for _, body in peer.requests if body["spec"].get("user") == "friend"]
    assert len(asked) == 1
    assert asked[0]["spec"]["resourceAttributes"] == {"verb": "list", "version": "v1", "resource": "pods"}


def test_a_failing_webhook_is_an_error_or_a_denial_as_configured(host, secured, start_peer, tmp_path):
    peer = start_peer(lambda path, body: (400, {}))
    data, flags = secured
    config = peer.kubeconfig(tmp_path / "webhook.kubeconfig")
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            {
                "type": "Webhook",
                "name": "first",
                "webhook": {
                    "timeout": "3s",
                    "subjectAccessReviewVersion": "v1",
                    "matchConditionSubjectAccessReviewVersion": "v1",
                    "failurePolicy": "NoOpinion",
                    "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(config)},
                    "matchConditions": [{"expression": "request.user != 'skipped'"}],
                },
            },
            {"type": "RBAC", "name": "rbac"},
        ],
    }
    path = tmp_path / "authorization.json"
    path.write_bytes(orjson.dumps(document))
    server = host(data, *flags[:2], f"--authorization-config={path}")
    assert server.call("GET", "/version", headers=as_user("jane"))[0] == 200
    code, _, answer = server.call("GET", "/api/v1/pods", headers=as_user("jane"))
    assert (code, answer.startswith(b'Internal Server Error: "/api/v1/pods": ')) == (500, True)
    assert server.call("GET", "/api/v1/pods", headers=as_user("skipped"))[0] == 403
    document["authorizers"][0]["webhook"]["failurePolicy"] = "Deny"
    path.write_bytes(orjson.dumps(document))
    until(lambda: server.call("GET", "/version", headers=as_user("jane"))[0] != 200)


def test_abac_file(host, secured, tmp_path):
    policies = tmp_path / "policies.jsonl"
    spec = {"user": "bob", "namespace": "*", "resource": "pods", "apiGroup": "", "readonly": True}
    policy = {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec}
    policies.write_bytes(orjson.dumps(policy) + b"\n")
    data, flags = secured
    server = host(data, *flags[:-1], "ABAC", f"--authorization-policy-file={policies}")
    assert server.call("GET", "/api/v1/pods", headers=as_user("bob"))[0] == 200
    assert server.call("GET", "/api/v1/secrets", headers=as_user("bob"))[0] == 403


# The search for a way around: a user with no rights but to one namespace's config maps.

SECRET = "aG9sZC1tZQ=="
SEGMENTS = [
    "api", "apis", "v1", "namespaces", "fuzz-open", "fuzz-closed", "secrets", "configmaps", "kept", "watch", "proxy",
    "nodes", "status", "..", ".", "", "%2e%2e", "%2E", "%2f", "%2F..%2F", "a%00b", ";", "*", "finalize",
]  # fmt: skip
HEADERS = [
    "Impersonate-User: kubernetes-admin",
    "Impersonate-Group: system:masters",
    "impersonate-user: system:admin",
    "Impersonate-Uid: 1",
    "Impersonate-Extra-Scopes: a",
    "X-Remote-User: kubernetes-admin",
    "X-Remote-Group: system:masters",
    "X-Remote-Extra-Authentication.Kubernetes.Io%2fPod-Name: x",
    "Authorization: Basic YWRtaW46YWRtaW4=",
    "X-Original-URL: /api/v1/secrets",
    "X-Rewrite-URL: /api/v1/secrets",
    "X-HTTP-Method-Override: GET",
    "Upgrade: websocket",
    "Connection: Upgrade",
]
QUERIES = [
    "",
    "?watch=1&timeoutSeconds=1",
    "?limit=1",
    "?fieldSelector=metadata.name%3Dkept",
    r"?fieldSelector=metadata.namespace!%3Dx%5C%2Cmetadata.name%3Dopen",
    "?namespace=fuzz-open",
    "?as=system:admin",
    "?dryRun=All",
]


@pytest.fixture(scope="module")
def outsider(server):
    """A token of a service account with rights to config maps of one namespace, and secrets in another."""
    server.namespace("fuzz-open")
    server.namespace("fuzz-closed")
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    role = {"metadata": {"name": "open"}, "rules": rules}
    server.call("POST", f"{ROLES}/namespaces/fuzz-open/roles", role)
    binding = {
        "metadata": {"name": "open"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "open"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "fuzz-open", "name": "default"}],
    }
    server.call("POST", f"{ROLES}/namespaces/fuzz-open/rolebindings", binding)
    for namespace in ("fuzz-open", "fuzz-closed"):
        secret = {"metadata": {"name": "kept"}, "data": {"hold": SECRET}}
        assert server.call("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)[0] == 201
    made = server.call("POST", "/api/v1/namespaces/fuzz-open/serviceaccounts/default/token", {"spec": {}})[2]
    return made["status"]["token"]


def exchange(server, data):
    """Raw bytes there, raw bytes back."""
    context = create_default_context(cafile=str(server.data / "pki" / "ca.crt"))
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=120) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(data)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


def random_request(chance, token):
    method = chance.choice(["GET", "GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "get", "OPTIONS", "TRACE"])
    if chance.random() < 0.5:
        path = "/" + "/".join(chance.choice(SEGMENTS) for _ in range(chance.randint(1, 8)))
    else:
        path = "/api/v1/namespaces/fuzz-closed/secrets/kept"
        at = chance.randint(1, len(path) - 1)
        path = path[:at] + chance.choice(["", "/", "/./", "//", "%2f", "/../", "%2e%2e/", "%00", ";x"]) + path[at:]
    path += chance.choice(QUERIES)
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
    shown = chance.choice(
        [token, token, token, "", token[:-3], token + "=", token.swapcase(), f"{token.rsplit('.', 1)[0]}.", "x"]
    )
    if shown:
        lines.append(f"Authorization: {chance.choice(['Bearer', 'bearer', 'Bearer ', 'BEARER'])} {shown}")
    lines += chance.sample(HEADERS, chance.randint(0, 3))
    if chance.random() < 0.2:
        lines.append(
            chance.choice(["Content-Length: 4\r\nContent-Length: 5", "Transfer-Encoding: chunked\r\nContent-Length: 3"])
        )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_no_request_without_rights_gets_what_it_should_not(server, outsider):
    """Over TLS and from outside; ``tests/robustness`` has the wider search."""
    chance = random.Random(0)
    for _ in range(60):
        request = random_request(chance, outsider)
        answer = exchange(server, request)
        assert SECRET.encode() not in answer, request
        head = answer.split(b"\r\n", 1)[0]
        if head.split(b" ")[1:2] == [b"200"] and b"/secrets" in request.split(b"\r\n", 1)[0]:
            assert b"SecretList" not in answer and b'"Secret"' not in answer, request
    assert server.call("GET", "/api/v1/namespaces/fuzz-closed/secrets/kept")[2]["data"] == {"hold": SECRET}
    assert server.call("GET", "/api/v1/namespaces/fuzz-open/secrets/kept")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/fuzz-open/../fuzz-closed/secrets/kept",
        "/api/v1/namespaces/fuzz-open/%2e%2e/fuzz-closed/secrets/kept",
        "/api/v1/namespaces/fuzz-open%2f..%2ffuzz-closed/secrets/kept",
        "/api/v1/namespaces/fuzz-open/configmaps/..%2fsecrets%2fkept",
        "/api/v1/namespaces/fuzz-open/configmaps%2f..%2fsecrets/kept",
        "/api/v1/namespaces/fuzz-open/nodes",
        "/api/v1/namespaces/fuzz-open/namespaces",
        "//api/v1/namespaces/fuzz-closed/secrets",
        "/api/v1/namespaces//secrets",
        "/api/v1//secrets",
    ],
)
def test_tricks_with_paths(server, outsider, path):
    request = (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {outsider}\r\n\r\n".encode()
    )
    code = int(exchange(server, request).split(b" ", 2)[1])
    assert code in (400, 403, 404), path


@pytest.mark.parametrize(
    "smuggled",
    [
        b"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET",
        b"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        b"POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\n Impersonate-User: folded\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nImpersonate-User : spaced\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET /version HTTP/1.1\nHost: x\nX: a\r\nb: c\r\n\r\n\x00",
    ],
)
def test_ambiguous_requests_are_refused(server, smuggled):
    """Whatever two servers in a row could read differently is refused, or answered once before the connection ends."""
    answer = exchange(server, smuggled)
    assert answer.count(b"HTTP/1.1 ") <= 1
    refused = not answer or answer.split(b" ", 2)[1] in (b"400", b"501")
    assert refused or b"\r\nConnection: close\r\n" in answer, answer[:300]
