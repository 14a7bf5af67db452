"""ServiceAccount: accounts, tokens, pull secrets, mirror pods, and secrets that accounts keep to themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins import service_account
from pilothouse.admission.plugins.service_account import ServiceAccount
from pilothouse.endpoints.admission import UPDATE

PODS, ACCOUNTS = "/v1/pods", "/v1/serviceaccounts"
PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
MIRROR = {"kubernetes.io/config.mirror": "x"}
ENFORCE = {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that would have been made."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(service_account.asyncio, "sleep", pause)
    return pauses


async def test_a_pod_gets_the_default_account_and_its_token(
    environment: Environment, make_request: Any, make_pod: Any, put: Any
) -> None:
    await put(ACCOUNTS, "default", "ns", imagePullSecrets=[{"name": "pull"}])
    pod = make_pod(initContainers=[{"name": "i"}])
    await ServiceAccount(environment).admit(make_request(PODS, pod))
    spec = pod["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert len(volume["name"]) == len("kube-api-access-") + 5
    assert volume["projected"]["defaultMode"] == 420
    assert volume["projected"]["sources"][0] == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    mount = {"name": volume["name"], "readOnly": True, "mountPath": PATH}
    assert spec["containers"][0]["volumeMounts"] == spec["initContainers"][0]["volumeMounts"] == [mount]


@pytest.mark.parametrize(
    ("pod_wish", "account_wish", "mounted"),
    [(None, None, True), (False, None, False), (None, False, False), (True, False, True), (False, True, False)],
)
async def test_who_decides_about_mounting(
    environment: Environment,
    make_request: Any,
    make_pod: Any,
    put: Any,
    pod_wish: Any,
    account_wish: Any,
    mounted: bool,
) -> None:
    await put(ACCOUNTS, "default", "ns", automountServiceAccountToken=account_wish)
    pod = make_pod(automountServiceAccountToken=pod_wish)
    await ServiceAccount(environment).admit(make_request(PODS, pod))
    assert bool(pod["spec"].get("volumes")) is mounted


async def test_what_is_mounted_there_already_stays(
    environment: Environment, make_request: Any, make_pod: Any, put: Any
) -> None:
    await put(ACCOUNTS, "default", "ns")
    pod = make_pod(containers=[{"name": "c", "volumeMounts": [{"name": "own", "mountPath": PATH}]}])
    await ServiceAccount(environment).admit(make_request(PODS, pod))
    assert "volumes" not in pod["spec"]


async def test_a_missing_account(
    environment: Environment, make_request: Any, make_pod: Any, refused: Any, no_waiting: list[float]
) -> None:
    error = await refused(ServiceAccount(environment).admit(make_request(PODS, make_pod(serviceAccountName="x"))))
    assert error.message == (
        'pods "p" is forbidden: error looking up service account ns/x: serviceaccount "x" not found'
    )
    assert no_waiting == []


async def test_the_default_account_is_waited_for(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            await put(ACCOUNTS, "default", "ns")

    monkeypatch.setattr(service_account.asyncio, "sleep", pause)
    pod = make_pod()
    await ServiceAccount(environment).admit(make_request(PODS, pod))
    assert len(pauses) == 3
    assert pod["spec"]["volumes"]


async def test_waiting_for_the_default_account_ends(
    environment: Environment, make_request: Any, make_pod: Any, refused: Any, no_waiting: list[float]
) -> None:
    await refused(ServiceAccount(environment).admit(make_request(PODS, make_pod())))
    assert len(no_waiting) == 9
    assert all(0.1 <= pause < 0.2 for pause in no_waiting)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"serviceAccountName": "x"}, "a mirror pod may not reference service accounts"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "a mirror pod may not reference secrets"),
        ({"imagePullSecrets": [{"name": "s"}]}, "a mirror pod may not reference secrets"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
async def test_mirror_pods_refer_to_nothing(
    environment: Environment, make_request: Any, make_pod: Any, refused: Any, spec: Any, message: str
) -> None:
    pod = make_pod(**spec)
    pod["metadata"]["annotations"] = MIRROR
    error = await refused(ServiceAccount(environment).admit(make_request(PODS, pod)))
    assert error.message == f'pods "p" is forbidden: {message}'


async def test_mirror_pods_are_left_alone(environment: Environment, make_request: Any, make_pod: Any) -> None:
    pod = make_pod()
    pod["metadata"]["annotations"] = MIRROR
    before = dict(pod["spec"])
    await ServiceAccount(environment).admit(make_request(PODS, pod))
    assert pod["spec"] == before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            'volume with secret.secretName="s" is not allowed because service account a does not reference that secret',
        ),
        (
            {"containers": [{"name": "c", "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s"}}}]}]},
            'container c with envVar E referencing secret.secretName="s" is not allowed because service account a '
            "does not reference that secret",
        ),
        (
            {"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "s"}}]}]},
            'init container i with envFrom referencing secret.secretName="s" is not allowed because service account a '
            "does not reference that secret",
        ),
        (
            {"imagePullSecrets": [{"name": "s"}]},
            'imagePullSecrets[0].name="s" is not allowed because service account a does not reference that '
            "imagePullSecret",
        ),
    ],
)
async def test_secrets_must_be_shared(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any, spec: Any, message: str
) -> None:
    await put(ACCOUNTS, "a", "ns", metadata=ENFORCE, secrets=[{"name": "other"}])
    attributes = make_request(PODS, make_pod(serviceAccountName="a", **spec))
    assert (await refused(ServiceAccount(environment).admit(attributes))).message == f'pods "p" is forbidden: {message}'
    assert (await refused(ServiceAccount(environment).validate(attributes))).code == 403


async def test_ephemeral_containers_fail_differently(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any
) -> None:
    await put(ACCOUNTS, "a", "ns", metadata=ENFORCE)
    added = [{"name": "e", "envFrom": [{"secretRef": {"name": "s"}}]}]
    pod = make_pod(serviceAccountName="a", ephemeralContainers=added)
    attributes = make_request("/v1/pods:ephemeralcontainers", pod, make_pod(), operation=UPDATE)
    error = await refused(ServiceAccount(environment).validate(attributes))
    assert error.code == 500
    assert error.message.startswith("ephemeral container e with envFrom referencing")


def test_the_pause_is_asyncios() -> None:
    assert service_account.asyncio is asyncio
