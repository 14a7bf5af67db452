"""Tokens of service accounts and of those who join a cluster."""

from __future__ import annotations

import base64

import pytest

from pilothouse.controllers.manager.context import ManagerSettings
from pilothouse.controllers.tokens.bootstrap import seconds_left, signing_token
from pilothouse.controllers.tokens.bootstrap_signer import detached_signature
from pilothouse.controllers.tokens.legacy_token_cleaner import secret_names
from pilothouse.credentials.pki import Pki
from pilothouse.machinery.times import parse_time
from pilothouse.testing.fake_clock import FakeClock
from pilothouse.testing.running_controllers import RunningControllers

NOW = parse_time("2026-06-01T00:00:00Z")


def bootstrap(name: str = "bootstrap-token-abcdef", **fields: str) -> dict[str, object]:
    fields = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"} | {
        name.replace("_", "-"): value for name, value in fields.items()
    }
    data = {name: base64.b64encode(value.encode()).decode() for name, value in fields.items()}
    metadata = {"name": name, "namespace": "kube-system"}
    return {"metadata": metadata, "type": "bootstrap.kubernetes.io/token", "data": data}


@pytest.mark.parametrize(
    ("secret", "signs"),
    [
        (bootstrap(), True),
        (bootstrap("other"), False),
        (bootstrap(token_id="fedcba"), False),
        (bootstrap(token_secret=""), False),
        (bootstrap(usage_bootstrap_signing="false"), False),
        (bootstrap(expiration="2026-05-31T00:00:00Z"), False),
        (bootstrap(expiration="2026-06-02T00:00:00Z"), True),
        (bootstrap(expiration="tomorrow"), False),
    ],
)
def test_which_tokens_sign(secret: dict[str, object], signs: bool) -> None:
    assert (signing_token(secret, NOW) == ("abcdef", "0123456789abcdef")) is signs


def test_how_long_tokens_hold() -> None:
    assert seconds_left(bootstrap(), NOW) is None
    assert seconds_left(bootstrap(expiration="2026-06-01T00:01:00Z"), NOW) == 60.0
    assert seconds_left(bootstrap(expiration="never"), NOW) == 0.0


def test_a_detached_signature() -> None:
    """The example that cluster-bootstrap is tested with."""
    content = "Hello from the other side. I must have called a thousand times."
    signature = detached_signature(content, "joshua", "my voice is my passcode")
    assert signature == "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"


def test_the_secrets_of_a_pod() -> None:
    spec = {
        "imagePullSecrets": [{"name": "a"}],
        "volumes": [{"secret": {"secretName": "b"}}, {"projected": {"sources": [{"secret": {"name": "c"}}]}}],
        "containers": [
            {"envFrom": [{"secretRef": {"name": "d"}}], "env": [{"valueFrom": {"secretKeyRef": {"name": "e"}}}]}
        ],
    }
    assert set(secret_names(spec)) == {"a", "b", "c", "d", "e"}


async def test_secrets_of_service_accounts() -> None:
    async with RunningControllers() as cluster:
        pki: Pki = cluster.server.pki
        settings = ManagerSettings(root_ca_file=str(pki.ca_cert), service_account_key_file=str(pki.service_account_key))
        cluster.start("tokens.service_account_tokens", settings=settings)
        secrets, accounts = cluster.of("", "v1", "secrets"), cluster.of("", "v1", "serviceaccounts")
        await accounts.create({"metadata": {"name": "robot", "namespace": "default"}})
        annotations = {"kubernetes.io/service-account.name": "robot"}
        metadata = {"name": "token", "namespace": "default", "annotations": annotations}
        await secrets.create({"metadata": metadata, "type": "kubernetes.io/service-account-token"})
        secret = await cluster.wait(secrets, "default", "token", lambda obj: "token" in (obj.get("data") or {}))
        assert base64.b64decode(secret["data"]["namespace"]) == b"default"
        assert base64.b64decode(secret["data"]["ca.crt"]) == pki.ca_cert.read_bytes()
        token = base64.b64decode(secret["data"]["token"]).decode()
        review = await cluster.of("authentication.k8s.io", "v1", "tokenreviews").create(
            {"metadata": {}, "spec": {"token": token}}
        )
        assert review["status"]["user"]["username"] == "system:serviceaccount:default:robot"
        await accounts.patch("default", "robot", {"secrets": [{"name": "token"}, {"name": "other"}]})
        await secrets.delete("default", "token")
        await cluster.wait(accounts, "default", "robot", lambda obj: obj.get("secrets") == [{"name": "other"}])
        await secrets.create({"metadata": metadata, "type": "kubernetes.io/service-account-token"})
        await accounts.delete("default", "robot")
        await cluster.wait_gone(secrets, "default", "token")


async def test_bootstrap_tokens() -> None:
    clock = FakeClock(NOW.seconds)
    modules = ("tokens.bootstrap_signer", "tokens.token_cleaner")
    async with RunningControllers(*modules, clock=clock) as cluster:
        maps, secrets = cluster.of("", "v1", "configmaps"), cluster.of("", "v1", "secrets")
        await secrets.create(bootstrap(expiration="2026-06-01T01:00:00Z"))
        metadata = {"name": "cluster-info", "namespace": "kube-public"}
        await maps.create({"metadata": metadata, "data": {"kubeconfig": "x", "jws-kubeconfig-old": "y"}})
        signed = await cluster.wait(
            maps, "kube-public", "cluster-info", lambda obj: "jws-kubeconfig-abcdef" in obj["data"]
        )
        assert signed["data"] == {
            "kubeconfig": "x",
            "jws-kubeconfig-abcdef": detached_signature("x", "abcdef", "0123456789abcdef"),
        }
        await clock.until_waiting()
        clock.advance(3601)
        await cluster.wait_gone(secrets, "kube-system", "bootstrap-token-abcdef")
        await cluster.wait(maps, "kube-public", "cluster-info", lambda obj: obj["data"] == {"kubeconfig": "x"})


async def test_tokens_that_nobody_uses() -> None:
    clock = FakeClock()
    async with RunningControllers(clock=clock) as cluster:
        secrets, accounts = cluster.of("", "v1", "secrets"), cluster.of("", "v1", "serviceaccounts")
        await accounts.create({"metadata": {"name": "robot", "namespace": "default"}, "secrets": [{"name": "old"}]})
        for name in ("old", "manual"):
            annotations = {"kubernetes.io/service-account.name": "robot"}
            metadata = {"name": name, "namespace": "default", "annotations": annotations}
            await secrets.create({"metadata": metadata, "type": "kubernetes.io/service-account-token"})
        now = (await secrets.get("default", "old"))["metadata"]["creationTimestamp"]
        clock.advance(parse_time(now).seconds - clock.now().seconds + 370 * 24 * 3600)
        cluster.start("tokens.legacy_token_cleaner")
        label = "kubernetes.io/legacy-token-invalid-since"
        await cluster.wait(secrets, "default", "old", lambda obj: label in (obj["metadata"].get("labels") or {}))
        await clock.until_waiting()
        clock.advance(370 * 24 * 3600)
        await cluster.wait_gone(secrets, "default", "old")
        assert (await secrets.get("default", "manual"))["metadata"].get("labels") is None
