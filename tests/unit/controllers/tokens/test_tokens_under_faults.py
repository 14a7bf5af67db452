"""Whatever fails and whenever it is killed: each account that is there has its tokens, and no other has any."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from pilothouse.controllers.manager.context import ManagerSettings
from pilothouse.controllers.tokens.service_account_tokens import ACCOUNT_NAME, ACCOUNT_UID, TYPE
from pilothouse.credentials.pki import Pki
from pilothouse.machinery.objects import Object

from ..trouble import SEEDS, TroubledControllers, once


def settings(pki: Pki) -> ManagerSettings:
    return ManagerSettings(root_ca_file=str(pki.ca_cert), service_account_key_file=str(pki.service_account_key))


def token_of(secret: Object) -> str:
    return base64.b64decode((secret.get("data") or {}).get("token") or "").decode()


def uid_in(token: str) -> str:
    payload = token.split(".")[1]
    claims: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return str(claims["kubernetes.io/serviceaccount/service-account.uid"])


def tokens_are_of_their_account(secrets: list[Object]) -> None:
    for secret in secrets:
        if token := token_of(secret):
            assert uid_in(token) == secret["metadata"]["annotations"][ACCOUNT_UID]


@pytest.mark.parametrize("seed", SEEDS)
async def test_tokens(seed: int) -> None:
    async with TroubledControllers(seed, "tokens.service_account_tokens", settings=settings) as cluster:
        informer = cluster.informers.of("", "v1", "secrets")
        cluster.never(informer, once(token_of))
        cluster.never(informer, tokens_are_of_their_account)
        secrets, accounts = cluster.of("", "v1", "secrets"), cluster.of("", "v1", "serviceaccounts")
        await secrets.create({"metadata": {"name": "other", "namespace": "default"}, "data": {"token": ""}})
        for name in ("stays", "goes", "comes-back"):
            await accounts.create({"metadata": {"name": name, "namespace": "default"}})
            for number in range(2):
                metadata = {"name": f"{name}-{number}", "namespace": "default", "annotations": {ACCOUNT_NAME: name}}
                await secrets.create({"metadata": metadata, "type": TYPE})
        await cluster.suffer(1)
        for name in ("goes", "comes-back"):
            await accounts.delete("default", name)
        await accounts.create({"metadata": {"name": "comes-back", "namespace": "default"}})

        async def are_right() -> bool:
            uids = {
                each["metadata"]["name"]: each["metadata"]["uid"] for each in await cluster.all("", "serviceaccounts")
            }
            found = {each["metadata"]["name"]: each for each in (await secrets.list("default"))["items"]}
            filled = all(
                token_of(each) and uid_in(token_of(each)) == uids.get(each["metadata"]["annotations"][ACCOUNT_NAME])
                for each in found.values()
                if each["type"] == TYPE
            )
            there = {name for name in found if not name.startswith("comes-back")}
            return filled and there == {"other", "stays-0", "stays-1"}

        await cluster.survive(are_right)
