"""What kubectl 1.37 shows: explanations from OpenAPI, API versions, wide columns, tokens and permissions."""

from __future__ import annotations

import base64
import json

import pytest


def section(text, field):
    """What is said about one field: the indented lines after its name."""
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(f"  {field}\t"))
    end = next(number for number in range(at + 1, len(lines)) if not lines[number].startswith("    "))
    return lines[at], " ".join(line.strip() for line in lines[at + 1 : end])


def test_explains_a_list_of_structs(kubectl):
    text = kubectl("explain", "pod.spec.containers")
    assert text.startswith("KIND:       Pod\nVERSION:    v1\n\nFIELD: containers <[]Container>\n")
    head, description = section(text, "name")
    assert head == "  name\t<string> -required-"
    assert "DNS_LABEL" in description


def test_explains_a_struct_of_a_group(kubectl):
    text = kubectl("explain", "deployment.spec.strategy")
    assert text.startswith(
        "GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n\nFIELD: strategy <DeploymentStrategy>"
    )
    assert section(text, "rollingUpdate")[0] == "  rollingUpdate\t<RollingUpdateDeployment>"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("pod.spec.restartPolicy", "Always, Never, OnFailure"),
        ("service.spec.type", "ClusterIP, ExternalName, LoadBalancer, NodePort"),
    ],
)
def test_explains_which_values_there_are(kubectl, field, values):
    assert f"ENUM:\n    {values.replace(', ', chr(10) + '    ')}\n" in kubectl("explain", field)


def test_explains_recursively(kubectl):
    lines = kubectl("explain", "cronjob", "--recursive").split("\n")
    assert "  spec\t<CronJobSpec> -required-" in lines
    assert "            containers\t<[]Container> -required-" in lines
    assert len(lines) > 1200


def test_explains_another_version_and_refuses_what_is_not_there(kubectl):
    assert "targetCPUUtilizationPercentage" in kubectl(
        "explain", "horizontalpodautoscalers.spec", "--api-version=autoscaling/v1"
    )
    assert kubectl("explain", "job.spec.nothing", fails=True) == 'error: field "nothing" does not exist\n'


def test_api_versions(kubectl):
    listed = kubectl("api-versions").split()
    assert listed == sorted(listed)
    assert {
        "v1",
        "apps/v1",
        "autoscaling/v1",
        "autoscaling/v2",
        "batch/v1",
        "networking.k8s.io/v1",
        "policy/v1",
    } <= set(listed)


WIDE = {
    "deployment": "READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
    "service": "TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
    "configmap": "DATA AGE",
    "job": "STATUS COMPLETIONS DURATION AGE CONTAINERS IMAGES SELECTOR",
    "cronjob": "SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE CONTAINERS IMAGES SELECTOR",
    "ingress": "CLASS HOSTS ADDRESS PORTS AGE",
    "poddisruptionbudget": "MIN AVAILABLE MAX UNAVAILABLE ALLOWED DISRUPTIONS AGE",
    "role": "CREATED AT",
}
CELLS = {
    "deployment": ["0/2", "0", "0", "", "main", "nginx:1.27", "app=web"],
    "configmap": ["1", ""],
    "cronjob": ["*/5 * * * *", "<none>", "False", "0", "<none>", "", "main", "nginx:1.27", "<none>"],
    "ingress": ["<none>", "example.com", "", "80", ""],
    "poddisruptionbudget": ["50%", "N/A", "0", ""],
}


def test_wide_columns(kubectl, server, kind, manifest):
    namespace = server.namespace(f"wide-{kind}")
    kubectl("-n", namespace, "create", "-f", "-", stdin=manifest)
    head, row = kubectl("-n", namespace, "get", kind, "-o", "wide").splitlines()
    assert head.split() == ["NAME", *WIDE[kind].split()]
    assert row.startswith("thing ")
    starts = [0, *(at for at in range(3, len(head)) if head[at] != " " and head[at - 3 : at] == "   ")]
    cells = [row[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    ages = {at for at, start in enumerate(starts) if head[start:].startswith("AGE")}
    shown = ["" if at in ages else cell for at, cell in enumerate(cells)]
    assert shown[1:] == CELLS.get(kind, shown[1:])


def test_wide_columns_of_pods(kubectl, server):
    namespace = server.namespace("wide-pods")
    kubectl("-n", namespace, "run", "thing", "--image=nginx")
    head, row = kubectl("-n", namespace, "get", "pods", "-o", "wide").splitlines()
    assert head.split()[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert head.endswith("   NOMINATED NODE   READINESS GATES")
    assert row.split()[:4] == ["thing", "0/1", "Pending", "0"]
    assert row.split()[5:] == ["<none>"] * 4


def test_tokens_of_service_accounts(kubectl, server):
    namespace = server.namespace("tokens")
    token = kubectl("-n", namespace, "create", "token", "default", "--audience=example.com", "--duration=20m").strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["aud"] == ["example.com"]
    assert claims["sub"] == f"system:serviceaccount:{namespace}:default"
    assert claims["exp"] - claims["iat"] == 1200
    refusal = kubectl("-n", namespace, "create", "token", "nobody", fails=True)
    assert refusal == 'error: failed to create token: serviceaccounts "nobody" not found\n'


@pytest.mark.parametrize(
    ("words", "answer"),
    [(("create", "pods"), "yes"), (("list", "pods", "--as=alice"), "no"), (("get", "/metrics", "--as=alice"), "no")],
)
def test_permissions(run, words, answer):
    done = run("auth", "can-i", *words)
    assert done.stdout.split()[0] == answer
    assert done.returncode == (answer == "no")


def test_describes(kubectl, server, manifests):
    namespace = server.namespace("describe")
    for kind in ("deployment", "service", "cronjob"):
        kubectl("-n", namespace, "create", "-f", "-", stdin=manifests[kind])
    text = kubectl("-n", namespace, "describe", "deployment,service,cronjob", "thing")
    for line in (
        "StrategyType:           RollingUpdate",
        "Session Affinity:         None",
        "Concurrency Policy:            Allow",
    ):
        assert line in text
