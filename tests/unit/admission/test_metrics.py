"""What admission counts, with the labels of kube-apiserver."""

from __future__ import annotations

from typing import Any

from pilothouse.admission.chain import AdmissionChain
from pilothouse.admission.environment import Environment
from pilothouse.admission.metrics import AdmissionMetrics, error_type
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.plugins.mutating_admission_policy import MutatingAdmissionPolicy
from pilothouse.admission.plugins.validating_admission_policy import ValidatingAdmissionPolicy
from pilothouse.admission.refusals import forbidden
from pilothouse.admission.webhooks.accounting import CallAccount
from pilothouse.admission.webhooks.failures import CallFailed, rejection
from pilothouse.admission.webhooks.hooks import Client, Hook
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery import errors, labels
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.metrics import render

POLICIES = "admissionregistration.k8s.io/v1/{}admissionpolicies"
BINDINGS = "admissionregistration.k8s.io/v1/{}admissionpolicybindings"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "scope": "*"}


def counts(metrics: AdmissionMetrics, ending: str = "_count") -> dict[str, float]:
    """Lines of the page whose name ends so, without the common beginning of names."""
    found = {}
    for line in render(metrics.instruments()).decode().splitlines():
        name, _, value = line.rpartition(" ")
        if not line.startswith("#") and name.partition("{")[0].endswith(ending):
            found[name.removeprefix("apiserver_").removeprefix("admission_")] = float(value)
    return found


class Changing(Plugin):
    name = "Changing"
    operations = frozenset({CREATE})

    async def admit(self, attributes: Attributes) -> None:
        """Nothing to do."""


class Refusing(Plugin):
    name = "Refusing"
    operations = frozenset({CREATE})

    async def admit(self, attributes: Attributes) -> None:
        if attributes.name == "bad":
            raise forbidden(attributes, "no")


async def test_plugins_and_phases(environment: Environment, make_request: Any, refused: Any) -> None:
    chain = AdmissionChain([Changing(environment), Refusing(environment)])
    for _ in range(2):
        await chain.admit(make_request("/v1/configmaps", {"metadata": {"name": "good"}}))
    await refused(chain.admit(make_request("/v1/configmaps", {"metadata": {"name": "bad"}})))
    plugin, phase = "controller_admission_duration_seconds_count", "step_admission_duration_seconds"
    passed, stopped = 'operation="CREATE",rejected="false"', 'operation="CREATE",rejected="true"'
    assert counts(chain.metrics) == {
        f'{plugin}{{name="Changing",type="admit",{passed}}}': 3,
        f'{plugin}{{name="Refusing",type="admit",{passed}}}': 2,
        f'{plugin}{{name="Refusing",type="admit",{stopped}}}': 1,
        f'{phase}_count{{type="admit",{passed}}}': 2,
        f'{phase}_count{{type="admit",{stopped}}}': 1,
        f'{phase}_summary_count{{type="admit",{passed}}}': 2,
        f'{phase}_summary_count{{type="admit",{stopped}}}': 1,
    }
    page = render(chain.metrics.instruments()).decode()
    assert f"# TYPE apiserver_admission_{phase}_summary summary" in page


def hook(*, ignores_failure: bool) -> Hook:
    everything = labels.from_object({})
    return Hook(
        uid="u", configuration="c", name="h", client=Client(), rules=(), namespaces=everything, objects=everything,
        ignores_failure=ignores_failure, equivalent=False, side_effects=None, seconds=None, versions=(),
        reinvoked=False,
    )  # fmt: skip


def account(metrics: AdmissionMetrics, *, ignores_failure: bool = False) -> CallAccount:
    return CallAccount(metrics.webhooks, hook(ignores_failure=ignores_failure), "validating", CREATE)


def test_calls_of_webhooks_are_timed_for_the_audit_log() -> None:
    times: dict[str, float] = {"mutating-webhook": 5.0, "validating-webhook": 5.0}
    for phase in ("admit", "validating"):
        made = CallAccount(AdmissionMetrics().webhooks, hook(ignores_failure=False), phase, CREATE, times)
        made.answered()
    assert times["mutating-webhook"] > 5.0
    assert times["validating-webhook"] == 5.0


def test_calls_of_webhooks() -> None:
    metrics = AdmissionMetrics()
    account(metrics).answered()
    account(metrics).refused(rejection("h", {"code": 999}))
    account(metrics).refused(errors.internal_error("ours"))
    account(metrics).failed(CallFailed("h", "gone"))
    account(metrics, ignores_failure=True).failed(CallFailed("h", "bad request", 400))
    named = 'name="h",type="validating"'
    assert counts(metrics, "webhook_request_total") == {
        f'webhook_request_total{{{named},operation="CREATE",code="200",rejected="false"}}': 1,
        f'webhook_request_total{{{named},operation="CREATE",code="600",rejected="true"}}': 1,
        f'webhook_request_total{{{named},operation="CREATE",code="0",rejected="true"}}': 1,
        f'webhook_request_total{{{named},operation="CREATE",code="503",rejected="true"}}': 1,
        f'webhook_request_total{{{named},operation="CREATE",code="400",rejected="false"}}': 1,
    }
    refused = f'webhook_rejection_count{{{named},operation="CREATE"'
    assert counts(metrics, "rejection_count") == {
        f'{refused},error_type="no_error",rejection_code="600"}}': 1,
        f'{refused},error_type="apiserver_internal_error",rejection_code="0"}}': 1,
        f'{refused},error_type="calling_webhook_error",rejection_code="503"}}': 1,
    }
    assert counts(metrics, "fail_open_count") == {f"webhook_fail_open_count{{{named}}}": 1}
    assert sum(counts(metrics, "webhook_admission_duration_seconds_count").values()) == 5
    account(metrics).failed(CallFailed("h", "x509: CA signature digest algorithm too weak"))
    assert counts(metrics, "sha1_total") == {"webhooks_x509_insecure_sha1_total": 1}
    account(metrics).failed(CallFailed("h", "x509: certificate relies on legacy Common Name field, use SANs instead"))
    assert counts(metrics, "san_total") == {"webhooks_x509_missing_san_total": 1}


async def test_policies(environment: Environment, put: Any, make_request: Any, refused: Any) -> None:
    await put("/v1/namespaces", "ns")
    constraints = {"resourceRules": [RULE], "matchPolicy": "Equivalent"}
    conditions = [{"name": "all", "expression": "true"}]
    rules = [{"expression": "false"}, {"expression": "object.zz == 1"}, {"expression": "true"}]
    spec = {"matchConstraints": constraints, "failurePolicy": "Fail", "matchConditions": conditions}
    await put(POLICIES.format("validating"), "p", spec={**spec, "validations": rules})
    await put(BINDINGS.format("validating"), "b", spec={"policyName": "p", "validationActions": ["Deny", "Audit"]})
    mutation = {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/data', value: {}}]"},
    }
    await put(POLICIES.format("mutating"), "m", spec={**spec, "mutations": [mutation, mutation]})
    await put(BINDINGS.format("mutating"), "b", spec={"policyName": "m"})
    obj = {"metadata": {"name": "x", "namespace": "ns"}}
    attributes = make_request("/v1/configmaps", obj, kind=GroupVersionKind("", "v1", "ConfigMap"))
    await MutatingAdmissionPolicy(environment).admit(attributes)
    await refused(ValidatingAdmissionPolicy(environment).validate(attributes))
    checks = 'validating_admission_policy_check_total{policy="p",policy_binding="b"'
    mutations = 'mutating_admission_policy_check_total{policy="m",policy_binding="b"'
    assert counts(environment.metrics, "check_total") == {
        f'{checks},error_type="invalid_error",enforcement_action="deny"}}': 2,
        f'{checks},error_type="invalid_error",enforcement_action="audit"}}': 2,
        f'{mutations},error_type="no_error"}}': 2,
    }
    labelled = 'kind="policy",type="validate",operation="CREATE"'
    assert counts(environment.metrics, "condition_evaluation_seconds_count") == {
        f'match_condition_evaluation_seconds_count{{name="m",{labelled}}}': 1,
        f'match_condition_evaluation_seconds_count{{name="p",{labelled}}}': 1,
    }


def test_kinds_of_failures() -> None:
    assert error_type("compilation error: x") == "compile_error"
    assert error_type("validation failed due to running out of cost budget, and so on") == "out_of_budget"
    assert error_type("no such key") == "invalid_error"
