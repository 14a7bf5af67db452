import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from pilothouse.controllers.own_objects import create, existing, remove
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controlplane.bootstrap.authentication_trust import (
    ALLOWED_NAMES,
    CLIENT_CA,
    EXTRA_PREFIXES,
    GROUP_HEADERS,
    NAME,
    NAMESPACE,
    PROXY_CA,
    UID_HEADERS,
    USERNAME_HEADERS,
    AuthenticationTrust,
    Trust,
    combine,
    combine_bundles,
)
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

NOW = datetime(2026, 11, 16, tzinfo=UTC)
LISTS = {
    ALLOWED_NAMES: ("aggregator",),
    EXTRA_PREFIXES: ("X-Remote-Extra-",),
    GROUP_HEADERS: ("X-Remote-Group",),
    UID_HEADERS: (),
    USERNAME_HEADERS: ("X-Remote-User",),
}


def authority(name: str, ends: datetime = NOW + timedelta(days=100)) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW - timedelta(days=1000)).not_valid_after(ends)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


A, B = authority("a"), authority("b")


def test_bundles_hold_every_certificate_once() -> None:
    assert combine_bundles(A, B, NOW.timestamp()) == A + B
    assert combine_bundles(A + B, B + A, NOW.timestamp()) == A + B
    assert combine_bundles("", A + A, NOW.timestamp()) == A
    assert combine_bundles("", "", NOW.timestamp()) == ""


@pytest.mark.parametrize(("ended", "kept"), [(timedelta(minutes=4), True), (timedelta(minutes=6), False)])
def test_expired_certificates_go_after_a_while(ended: timedelta, kept: bool) -> None:
    old = authority("old", NOW - ended)
    assert combine_bundles(old, A, NOW.timestamp()) == (old + A if kept else A)


def test_the_data_of_a_single_server() -> None:
    data = combine({}, {CLIENT_CA: A, PROXY_CA: B}, LISTS, NOW.timestamp())
    assert data == {
        CLIENT_CA: A,
        ALLOWED_NAMES: '["aggregator"]',
        PROXY_CA: B,
        EXTRA_PREFIXES: '["X-Remote-Extra-"]',
        GROUP_HEADERS: '["X-Remote-Group"]',
        USERNAME_HEADERS: '["X-Remote-User"]',
    }
    assert list(data) == sorted(data)


def test_servers_add_to_what_is_known() -> None:
    known = combine({}, {PROXY_CA: A}, LISTS, NOW.timestamp())
    mine = {**LISTS, ALLOWED_NAMES: ("other", "aggregator"), UID_HEADERS: ("X-Remote-Uid",)}
    data = combine(known, {CLIENT_CA: B, PROXY_CA: B}, mine, NOW.timestamp())
    assert data[PROXY_CA] == A + B
    assert json.loads(data[ALLOWED_NAMES]) == ["aggregator", "other"]
    assert json.loads(data[UID_HEADERS]) == ["X-Remote-Uid"]


def test_headers_without_an_authority_mean_nothing() -> None:
    assert combine({}, {}, LISTS, NOW.timestamp()) == {}
    assert combine({}, {CLIENT_CA: A}, LISTS, NOW.timestamp()) == {CLIENT_CA: A}


@pytest.mark.parametrize("damaged", ["{", "{}", "[1]"])
def test_lists_that_cannot_be_read_are_a_failure(damaged: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        combine({ALLOWED_NAMES: damaged}, {PROXY_CA: A}, LISTS, NOW.timestamp())


def trust_of(
    store: Store, informers: InformerFactory, folder: Path, client: str, proxy: str = ""
) -> AuthenticationTrust:
    paths = {}
    for key, text in (("client.crt", client), ("proxy.crt", proxy)):
        paths[key] = str(folder / key) if text else ""
        if text:
            (folder / key).write_text(text)
    ready = asyncio.Event()
    ready.set()
    return AuthenticationTrust(
        store, informers, Trust(paths["client.crt"], paths["proxy.crt"], LISTS), ready, NOW.timestamp
    )


async def until_it_holds(store: Store, *texts: str) -> None:
    watcher = await store.cache.watch(initial=True)
    async with asyncio.timeout(120):
        while True:
            stored = await existing(store, NAMESPACE, NAME)
            if stored is not None and all(text in stored["data"].get(CLIENT_CA, "") for text in texts):
                break
            assert await watcher.next_batch()
    watcher.stop()


async def test_the_config_map_is_made_and_comes_back(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor, tmp_path: Path
) -> None:
    store = storage.store("", "v1", "configmaps")
    trust = trust_of(store, informers, tmp_path, A)
    await trust.start(supervisor)
    await until_it_holds(store, A)
    await remove(store, NAMESPACE, NAME)
    await until_it_holds(store, A)


async def test_what_another_server_trusts_is_kept(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor, tmp_path: Path
) -> None:
    store = storage.store("", "v1", "configmaps")
    await create(store, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {CLIENT_CA: B}})
    trust = trust_of(store, informers, tmp_path, A)
    await trust.reconcile(NAME)
    await until_it_holds(store, A, B)


async def test_without_authorities_there_is_no_config_map(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor, tmp_path: Path
) -> None:
    store = storage.store("", "v1", "configmaps")
    await trust_of(store, informers, tmp_path, "").reconcile(NAME)
    assert await existing(store, NAMESPACE, NAME) is None
