"""Webhooks over real TLS: mutating, validating, slow, failing and lying ones."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from aiohttp import web

from pilothouse.admission.chain import AdmissionChain
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.plugins.mutating_admission_webhook import MutatingAdmissionWebhook
from pilothouse.admission.plugins.validating_admission_webhook import ValidatingAdmissionWebhook
from pilothouse.endpoints.admission import CREATE, DELETE, UPDATE, Attributes
from pilothouse.endpoints.installer import make_scope
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import GroupVersionKind, GroupVersionResource
from pilothouse.registry.storage import StorageFactory, find_resource

MUTATING = "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
RULE = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}


@pytest.fixture
async def mutating(environment: Environment) -> AsyncIterator[MutatingAdmissionWebhook]:
    plugin = MutatingAdmissionWebhook(environment)
    yield plugin
    await plugin.close()


@pytest.fixture
async def validating(environment: Environment) -> AsyncIterator[ValidatingAdmissionWebhook]:
    plugin = ValidatingAdmissionWebhook(environment)
    yield plugin
    await plugin.close()


def hook(server: Any, path: str = "/hook", name: str = "h.example.com", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "clientConfig": {"url": server.url + path, "caBundle": server.authority},
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        **more,
    }


def config_map(name: str = "m", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, **more}


@pytest.fixture
def ask(storage: StorageFactory, make_request: Any) -> Any:
    """Attributes of a request at a real endpoint."""

    def make(resource: str, obj: Any = None, old: Any = None, **more: Any) -> Attributes:
        group, version, plural = resource.split("/")
        row = find_resource(GroupVersionResource(group, version, plural).group_version, plural)
        store = storage.store_for(row)
        scope = make_scope(row, None, store, store.strategy, None)
        attributes = make_request(resource, obj, old, kind=scope.kind, **more)
        attributes.scope = scope
        assert isinstance(attributes, Attributes)
        return attributes

    return make


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    encoded = base64.b64encode(orjson.dumps(list(operations))).decode()
    return {"allowed": True, "patch": encoded, "patchType": "JSONPatch"}


def setting(key: str, value: str) -> dict[str, Any]:
    return patch({"op": "add", "path": f"/data/{key}", "value": value})


async def test_what_webhooks_are_shown(validating: Any, ask: Any, put: Any, server: Any) -> None:
    await put(VALIDATING, "c", webhooks=[hook(server)])
    options = {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
    new, old = config_map(data={"a": "b"}), config_map()
    await validating.validate(ask("/v1/configmaps", new, old, operation=UPDATE, options=options))
    (review,) = server.reviews
    request = review["request"]
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    typed = {"kind": "ConfigMap", "apiVersion": "v1"}
    assert review["path"] == "/hook?timeout=5s"
    assert review["apiVersion"] == "admission.k8s.io/v1"
    assert review["headers"]["User-Agent"] == "kube-apiserver-admission"
    assert len(request.pop("uid")) == 36
    assert request == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "m",
        "namespace": "ns",
        "operation": "UPDATE",
        "userInfo": {"username": "alice", "groups": ["devs"]},
        "object": {**typed, **new},
        "oldObject": {**typed, **old},
        "dryRun": False,
        "options": options,
    }


async def test_warnings_and_annotations(validating: Any, ask: Any, put: Any, server: Any) -> None:
    await put(VALIDATING, "c", webhooks=[hook(server)])
    said = {"allowed": True, "warnings": ["careful"], "auditAnnotations": {"k": "v"}}
    server.answers["/hook"] = lambda review: said
    attributes = ask("/v1/configmaps", config_map())
    await validating.validate(attributes)
    assert attributes.warnings == ["careful"]
    assert attributes.annotations == {"h.example.com/k": "v"}


DENIED = 'admission webhook "h.example.com" denied the request'


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        (None, 400, "", f"{DENIED} without explanation"),
        ({"message": "no"}, 400, "", f"{DENIED}: no"),
        ({"reason": "Forbidden", "code": 403}, 403, "Forbidden", f"{DENIED}: Forbidden"),
        ({"message": "no", "code": 200}, 400, "", f"{DENIED}: no"),
        ({"message": "no", "code": 418, "reason": "Teapot"}, 418, "Teapot", f"{DENIED}: no"),
    ],
)
async def test_refusals(
    validating: Any, ask: Any, put: Any, server: Any, refused: Any, status: Any, code: int, reason: str, message: str
) -> None:
    await put(VALIDATING, "c", webhooks=[hook(server)])
    server.answers["/hook"] = lambda review: {"allowed": False, **({"status": status} if status else {})}
    error = await refused(validating.validate(ask("/v1/configmaps", config_map())))
    assert (error.code, error.reason, error.message) == (code, reason, message)


FAILED = 'Internal error occurred: failed calling webhook "h.example.com": '


def text(status: int, body: str) -> Any:
    return lambda review: web.Response(status=status, text=body)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            text(500, "oops"),
            'failed to call webhook: an error on the server ("oops") has prevented the request from succeeding',
        ),
        (text(404, "x"), "failed to call webhook: the server could not find the requested resource"),
        (
            text(302, "x"),
            "failed to call webhook: the server responded with the status code 302 but did not return more information",
        ),
        (
            text(200, "hello"),
            "failed to call webhook: couldn't get version/kind; json parse error: invalid character 'h' looking for "
            "beginning of value",
        ),
        (lambda review: web.json_response({}), "received invalid webhook response: webhook response was absent"),
        (
            lambda review: {"uid": "other", "allowed": True},
            'received invalid webhook response: expected response.uid="UID", got "other"',
        ),
        (
            lambda review: web.json_response({"response": {"uid": review["request"]["uid"], "allowed": True}}),
            "received invalid webhook response: expected webhook response of admission.k8s.io/v1, "
            "Kind=AdmissionReview, got /, Kind=",
        ),
        (
            lambda review: setting("a", "b"),
            "received invalid webhook response: validating webhook may not return response.patch",
        ),
        (
            lambda review: {"allowed": True, "patchType": "JSONPatch"},
            "received invalid webhook response: validating webhook may not return response.patchType",
        ),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_failing_and_lying_webhooks(
    validating: Any, ask: Any, put: Any, server: Any, refused: Any, answer: Any, message: str, policy: str
) -> None:
    await put(VALIDATING, "c", webhooks=[hook(server, failurePolicy=policy)])
    server.answers["/hook"] = answer
    attributes = ask("/v1/configmaps", config_map())
    if policy == "Ignore":
        await validating.validate(attributes)
        assert attributes.annotations == {
            "failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "h.example.com"
        }
        return
    error = await refused(validating.validate(attributes))
    uid = server.reviews[0]["request"]["uid"]
    assert (error.code, error.message) == (500, FAILED + message.replace("UID", uid))


async def test_a_slow_webhook_is_given_up(validating: Any, ask: Any, put: Any, server: Any, refused: Any) -> None:
    never = asyncio.Event()

    async def wait(review: Any) -> Any:
        await never.wait()

    server.answers["/hook"] = wait
    await put(VALIDATING, "c", webhooks=[hook(server, timeoutSeconds=0.05)])
    error = await refused(validating.validate(ask("/v1/configmaps", config_map())))
    assert error.message == (
        f'{FAILED}failed to call webhook: Post "{server.url}/hook?timeout=0.05s": context deadline exceeded'
    )
    never.set()


async def test_a_slow_webhook_holds_up_nobody_else(validating: Any, ask: Any, put: Any, server: Any) -> None:
    gate = asyncio.Event()

    async def wait(review: Any) -> Any:
        await gate.wait()
        return {"allowed": True}

    server.answers["/slow"] = wait
    slow = hook(server, "/slow", rules=[{**RULE, "resources": ["secrets"]}])
    await put(VALIDATING, "c", webhooks=[slow, hook(server, "/fast", rules=[{**RULE, "resources": ["configmaps"]}])])
    held = asyncio.create_task(validating.validate(ask("/v1/secrets", {"metadata": {"name": "s"}})))
    await validating.validate(ask("/v1/configmaps", config_map()))
    assert not held.done()
    gate.set()
    await held


async def test_validating_webhooks_are_asked_at_once(validating: Any, ask: Any, put: Any, server: Any) -> None:
    both = asyncio.Barrier(2)

    async def wait(review: Any) -> Any:
        await both.wait()
        return {"allowed": True}

    server.answers["/a"] = server.answers["/b"] = wait
    await put(VALIDATING, "c", webhooks=[hook(server, "/a", "a.x.com"), hook(server, "/b", "b.x.com")])
    await validating.validate(ask("/v1/configmaps", config_map()))
    assert len(server.reviews) == 2


async def test_nobody_listens(validating: Any, ask: Any, put: Any, server: Any, refused: Any) -> None:
    client = {"url": "https://127.0.0.1:1/check"}
    await put(VALIDATING, "c", webhooks=[hook(server, clientConfig=client, timeoutSeconds=3)])
    error = await refused(validating.validate(ask("/v1/configmaps", config_map())))
    why = (
        'failed calling webhook "h.example.com": failed to call webhook: Post "https://127.0.0.1:1/check?timeout=3s": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )
    assert error.message == f"Internal error occurred: {why}"
    assert error.details == {"causes": [{"message": why}]}


async def test_a_certificate_nobody_vouches_for(validating: Any, ask: Any, put: Any, server: Any, refused: Any) -> None:
    await put(VALIDATING, "c", webhooks=[hook(server, clientConfig={"url": f"{server.url}/hook"})])
    error = await refused(validating.validate(ask("/v1/configmaps", config_map())))
    assert error.message.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")


def service_hook(server: Any, **more: Any) -> dict[str, Any]:
    service = {"name": "hook", "namespace": "ns", "path": "/hook", **more}
    return hook(server, clientConfig={"service": service, "caBundle": server.authority})


async def test_services_by_their_endpoints(
    storage: StorageFactory, ask: Any, put: Any, server: Any, refused: Any
) -> None:
    plugin = ValidatingAdmissionWebhook(Environment(storage, routes_services=True))
    await put(VALIDATING, "c", webhooks=[service_hook(server, port=8443)])
    prefix = f'{FAILED}failed to call webhook: Post "https://hook.ns.svc:8443/hook?timeout=5s": '
    error = await refused(plugin.validate(ask("/v1/configmaps", config_map())))
    assert error.message == prefix + 'service "hook" not found'
    await put("/v1/services", "hook", "ns", spec={"type": "ClusterIP", "ports": [{"name": "web", "port": 8443}]})
    error = await refused(plugin.validate(ask("/v1/configmaps", config_map())))
    assert error.message == prefix + 'no endpoints available for service "hook"'
    await put(
        "discovery.k8s.io/v1/endpointslices",
        "hook-1",
        "ns",
        metadata={"labels": {"kubernetes.io/service-name": "hook"}},
        ports=[{"name": "web", "port": server.port}],
        endpoints=[
            {"addresses": ["192.0.2.1"], "conditions": {"ready": False}},
            {"addresses": ["127.0.0.1"], "conditions": {"ready": True}},
        ],
    )
    await plugin.validate(ask("/v1/configmaps", config_map()))
    assert server.reviews[0]["headers"]["Host"] == "hook.ns.svc:8443"
    await plugin.close()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"clusterIP": "None", "type": "ClusterIP"}, 'cannot route to service with ClusterIP "None"'),
        ({"clusterIP": "127.0.0.1", "type": "ClusterIP"}, 'no service port 443 found for service "hook"'),
    ],
)
async def test_services_that_cannot_be_reached(
    validating: Any, ask: Any, put: Any, server: Any, refused: Any, spec: Any, message: str
) -> None:
    await put(VALIDATING, "c", webhooks=[service_hook(server)])
    await put("/v1/services", "hook", "ns", spec={**spec, "ports": [{"port": 80}]})
    error = await refused(validating.validate(ask("/v1/configmaps", config_map())))
    assert error.message.endswith(f'Post "https://hook.ns.svc:443/hook?timeout=5s": {message}')


async def test_services_by_their_cluster_address(validating: Any, ask: Any, put: Any, server: Any) -> None:
    await put(VALIDATING, "c", webhooks=[service_hook(server, port=server.port)])
    spec = {"type": "ClusterIP", "clusterIP": "127.0.0.1", "ports": [{"port": server.port}]}
    await put("/v1/services", "hook", "ns", spec=spec)
    await validating.validate(ask("/v1/configmaps", config_map()))
    assert len(server.reviews) == 1


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        ("None", ""),
        ("NoneOnDryRun", ""),
        ("Some", 'admission webhook "h.example.com" does not support dry run'),
        (None, f"{FAILED}Webhook SideEffects is nil"),
    ],
)
async def test_dry_runs(
    validating: Any, ask: Any, put: Any, server: Any, refused: Any, effects: Any, message: str
) -> None:
    await put(VALIDATING, "c", webhooks=[hook(server, sideEffects=effects)])
    action = validating.validate(ask("/v1/configmaps", config_map(), dry_run=True))
    if not message:
        await action
        assert server.reviews[0]["request"]["dryRun"] is True
        return
    assert (await refused(action)).message == message
    assert server.reviews == []


async def test_old_reviews(mutating: Any, ask: Any, put: Any, server: Any) -> None:
    await put(MUTATING, "c", webhooks=[hook(server, admissionReviewVersions=["v2", "v1beta1", "v1"])])
    server.answers["/hook"] = lambda review: web.json_response({"response": {**setting("a", "b"), "patchType": None}})
    attributes = ask("/v1/configmaps", config_map(data={}))
    await mutating.admit(attributes)
    assert server.reviews[0]["apiVersion"] == "admission.k8s.io/v1beta1"
    assert attributes.object["data"] == {"a": "b"}


async def test_unknown_reviews(mutating: Any, ask: Any, put: Any, server: Any, refused: Any) -> None:
    await put(MUTATING, "c", webhooks=[hook(server, admissionReviewVersions=["v2"])])
    error = await refused(mutating.admit(ask("/v1/configmaps", config_map())))
    assert "webhook does not accept known AdmissionReview versions (v1, v1beta1)" in error.message


async def test_each_sees_what_those_before_made(mutating: Any, ask: Any, put: Any, server: Any) -> None:
    await put(MUTATING, "b", webhooks=[hook(server, "/second", "second.x.com")])
    await put(MUTATING, "a", webhooks=[hook(server, "/first", "first.x.com")])
    server.answers["/first"] = lambda review: setting("a", "1")
    server.answers["/second"] = lambda review: setting("b", review["request"]["object"]["data"]["a"] + "2")
    attributes = ask("/v1/configmaps", config_map(data={}))
    await mutating.admit(attributes)
    assert attributes.object["data"] == {"a": "1", "b": "12"}
    assert "kind" not in attributes.object
    assert orjson.loads(attributes.annotations["mutation.webhook.admission.k8s.io/round_0_index_0"]) == {
        "configuration": "a",
        "webhook": "first.x.com",
        "mutated": True,
    }
    noted = orjson.loads(attributes.request_annotations["patch.webhook.admission.k8s.io/round_0_index_1"])
    assert noted["patch"] == [{"op": "add", "path": "/data/b", "value": "12"}]
    assert attributes.reinvocation.required


async def test_patched_objects_are_defaulted(mutating: Any, ask: Any, put: Any, server: Any) -> None:
    await put(MUTATING, "c", webhooks=[hook(server)])
    container = {"name": "side", "image": "img"}
    server.answers["/hook"] = lambda review: patch({"op": "add", "path": "/spec/containers/-", "value": container})
    spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"}
    attributes = ask("/v1/pods", {"metadata": {"name": "p"}, "spec": spec})
    await mutating.admit(attributes)
    added = attributes.object["spec"]["containers"][1]
    assert (added["name"], added["imagePullPolicy"]) == ("side", "Always")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (patch({"op": "remove", "path": "/nowhere"}), "Internal error occurred: "),
        (patch({"op": "replace", "path": "/data", "value": 5}), "Internal error occurred: "),
        (
            {"allowed": True, "patch": base64.b64encode(b"x").decode(), "patchType": "JSONPatch"},
            f"{FAILED}received undecodable patch in webhook response: invalid character 'x' looking for "
            "beginning of value",
        ),
        (
            {"allowed": True, "patch": base64.b64encode(b"[{}]").decode()},
            f"{FAILED}received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
        (
            {**setting("a", "b"), "patchType": "Other"},
            f'{FAILED}unsupported patch type "Other"',
        ),
    ],
)
async def test_patches_that_do_not_fit(
    mutating: Any, ask: Any, put: Any, server: Any, refused: Any, answer: Any, message: str
) -> None:
    await put(MUTATING, "c", webhooks=[hook(server)])
    server.answers["/hook"] = lambda review: answer
    error = await refused(mutating.admit(ask("/v1/configmaps", config_map(data={}))))
    assert error.code == 500
    assert error.message.startswith(message)


async def test_a_patch_that_makes_much_of_little_makes_the_object_weigh_more(
    mutating: Any, ask: Any, put: Any, server: Any
) -> None:
    """So that what is done with it from there on is done aside."""
    await put(MUTATING, "c", webhooks=[hook(server)])
    copied = ({"op": "copy", "from": "/data/a", "path": f"/data/b{number}"} for number in range(20))
    server.answers["/hook"] = lambda review: patch(*copied)
    attributes = ask("/v1/configmaps", config_map(data={"a": "x" * 10_000}))
    attributes.weight = 11_000
    await mutating.admit(attributes)
    assert len(attributes.object["data"]) == 21
    assert attributes.weight > 200_000


async def test_deletions_cannot_be_changed(mutating: Any, ask: Any, put: Any, server: Any, refused: Any) -> None:
    await put(MUTATING, "c", webhooks=[hook(server)])
    server.answers["/hook"] = lambda review: setting("a", "b")
    error = await refused(mutating.admit(ask("/v1/configmaps", None, config_map(), operation=DELETE)))
    assert error.message == (
        'Internal error occurred: admission webhook "h.example.com" attempted to modify the object, which is not '
        "supported for this operation"
    )


class Labelling(Plugin):
    """Changes the object whenever it is asked."""

    operations = frozenset({CREATE})

    async def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        data = attributes.object.setdefault("data", {})
        data["rounds"] = str(int(data.get("rounds", "0")) + 1)


@pytest.mark.parametrize(
    ("policies", "rounds"),
    [
        (("Never", "Never"), ["/a", "/b"]),
        (("IfNeeded", "Never"), ["/a", "/b", "/a"]),
        (("Never", "IfNeeded"), ["/a", "/b", "/b"]),
        (("IfNeeded", "IfNeeded"), ["/a", "/b", "/a", "/b"]),
    ],
)
async def test_reinvocation(
    environment: Environment, mutating: Any, ask: Any, put: Any, server: Any, policies: Any, rounds: list[str]
) -> None:
    hooks = [
        hook(server, path, f"{path[1:]}.x.com", reinvocationPolicy=policy)
        for path, policy in zip(("/a", "/b"), policies, strict=True)
    ]
    await put(MUTATING, "c", webhooks=hooks)
    server.answers["/b"] = lambda review: setting("b", "1")
    chain = AdmissionChain([Labelling(environment), mutating])
    attributes = ask("/v1/configmaps", config_map())
    await chain.admit(attributes)
    assert [review["path"].partition("?")[0] for review in server.reviews] == rounds
    assert attributes.object["data"]["rounds"] == "2"


async def test_nothing_changed_is_nothing_again(
    environment: Environment, mutating: Any, ask: Any, put: Any, server: Any
) -> None:
    await put(MUTATING, "c", webhooks=[hook(server, reinvocationPolicy="IfNeeded")])
    attributes = ask("/v1/configmaps", config_map())
    await AdmissionChain([Labelling(environment), mutating]).admit(attributes)
    assert len(server.reviews) == 1
    assert attributes.object["data"]["rounds"] == "1"


async def test_equivalent_versions(mutating: Any, ask: Any, put: Any, server: Any) -> None:
    rule = {**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["horizontalpodautoscalers"]}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
    }
    spec = {"scaleTargetRef": {"kind": "D", "name": "d"}, "maxReplicas": 3, "metrics": [metric]}
    server.answers["/hook"] = lambda review: patch({"op": "replace", "path": "/spec/maxReplicas", "value": 9})

    async def shown(policy: str) -> Any:
        await put(MUTATING, "c", webhooks=[hook(server, rules=[rule], matchPolicy=policy)])
        obj = {"metadata": {"name": "a", "namespace": "ns"}, "spec": dict(spec)}
        attributes = ask("autoscaling/v2/horizontalpodautoscalers", obj)
        await mutating.admit(attributes)
        return attributes.object

    assert (await shown("Exact"))["spec"]["maxReplicas"] == 3
    changed = await shown("Equivalent")
    request = server.reviews[0]["request"]
    assert request["kind"]["version"] == "v1"
    assert request["requestKind"]["version"] == "v2"
    assert request["object"]["apiVersion"] == "autoscaling/v1"
    assert request["object"]["spec"]["targetCPUUtilizationPercentage"] == 70
    assert changed["spec"]["maxReplicas"] == 9
    assert changed["spec"]["metrics"] == [metric]


async def test_changed_configurations_count_at_once(validating: Any, ask: Any, put: Any, server: Any) -> None:
    await put(VALIDATING, "c", webhooks=[hook(server, rules=[])])
    await validating.validate(ask("/v1/configmaps", config_map()))
    await put(VALIDATING, "c", webhooks=[hook(server)])
    await validating.validate(ask("/v1/configmaps", config_map()))
    assert len(server.reviews) == 1


FREE = "!has(object.metadata.labels) || !('free' in object.metadata.labels)"


@pytest.mark.parametrize(
    ("expressions", "policy", "called", "message"),
    [
        (["request.operation == 'CREATE'", "request.userInfo.username == 'alice'"], "Fail", 1, ""),
        (
            ["oldObject == null && object.kind == 'ConfigMap' && request.resource.resource == 'configmaps'"],
            "Fail",
            1,
            "",
        ),
        ([FREE], "Fail", 1, ""),
        (["object.metadata.name == 'other'"], "Fail", 0, ""),
        (["object.nothing == 1", "false"], "Fail", 0, ""),
        (["object.nothing == 1"], "Ignore", 0, ""),
        (
            ["object.nothing == 1", "true"],
            "Fail",
            0,
            "configmaps \"m\" is forbidden: expression 'object.nothing == 1' resulted in error: no such key: nothing",
        ),
        (
            ["1 +"],
            "Fail",
            0,
            'configmaps "m" is forbidden: compilation error: compilation failed: ERROR: <input>:1:4: Syntax error:',
        ),
        (
            ["'a'"],
            "Fail",
            0,
            'configmaps "m" is forbidden: compilation error: must evaluate to bool but got string',
        ),
        (["authorizer.group('').resource('pods').check('get').allowed()"], "Fail", 1, ""),
        (["authorizer.requestResource.check('shout').allowed()"], "Fail", 0, ""),
        (["authorizer.path('/healthz').check('get').reason() == 'no rule'"], "Fail", 1, ""),
    ],
)
async def test_match_conditions(
    validating: Any,
    authorizer: Any,
    ask: Any,
    put: Any,
    server: Any,
    expressions: list[str],
    policy: str,
    called: int,
    message: str,
) -> None:
    authorizer.allowed.add(("get", "pods", ""))
    conditions = [{"name": f"c{i}", "expression": text} for i, text in enumerate(expressions)]
    await put(VALIDATING, "c", webhooks=[hook(server, failurePolicy=policy, matchConditions=conditions)])
    if message:
        with pytest.raises(StatusError) as caught:
            await validating.validate(ask("/v1/configmaps", config_map()))
        assert caught.value.message.startswith(message)
    else:
        await validating.validate(ask("/v1/configmaps", config_map()))
    assert len(server.reviews) == called


async def test_the_registrations_themselves_are_not_asked_about(validating: Any) -> None:
    row = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
    from pilothouse.machinery.gvk import GroupResource

    assert not validating.concerns(CREATE, GroupResource(row.group, "validatingwebhookconfigurations"), "")
    assert not validating.concerns(CREATE, GroupResource("authentication.k8s.io", "tokenreviews"), "")
    assert validating.concerns(CREATE, GroupResource("", "pods"), "binding")
