"""Plug-ins over a database of their own, and requests to show them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.apis.strategy import Context
from pilothouse.authz.authorizer import Decision
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import User
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Entry

NOW = "2026-01-02T03:04:05Z"
Put = Callable[..., Awaitable[Entry]]


class FakeAuthorizer:
    """Allows what it was told to."""

    def __init__(self) -> None:
        self.allowed: set[tuple[str, str, str]] = set()
        self.questions: list[tuple[str, str, str]] = []

    async def authorize(self, attributes: Any) -> tuple[Decision, str]:
        question = (attributes.verb, attributes.resource, attributes.name)
        self.questions.append(question)
        return (Decision.ALLOW if question in self.allowed else Decision.NO_OPINION), "no rule"


@pytest.fixture
def authorizer() -> FakeAuthorizer:
    return FakeAuthorizer()


@pytest.fixture
def environment(storage: StorageFactory, authorizer: FakeAuthorizer) -> Environment:
    return Environment(storage, authorizer, rng=Random(1))


@pytest.fixture
def put(storage: StorageFactory) -> Put:
    """Stores an object as it is given, past all rules."""

    async def store_object(resource: str, name: str, namespace: str = "", **body: Any) -> Entry:
        group, version, plural = resource.split("/")
        store = storage.store(group, version, plural)
        uid = f"00000000-0000-0000-0000-{abs(hash((resource, namespace, name))) % 10**12:012d}"
        metadata = {"name": name, "uid": uid, "creationTimestamp": NOW, **body.pop("metadata", {})}
        if namespace:
            metadata["namespace"] = namespace
        obj = {**body, "metadata": metadata}
        key, data = store.key(namespace, name), store.codec.encode(obj)
        if not store.cache.ready:
            await store.cache.wait_ready()
        old = store.cache.get(key)
        value = store.codec.to_stored(data)
        if old is None:
            return await store.cache.create(key, value)
        return await store.cache.update(key, value, old.revision)

    return store_object


@pytest.fixture
def context() -> Context:
    return Context(now=NOW)


def request_for(resource: str, obj: Object | None = None, old: Object | None = None, **more: Any) -> Attributes:
    """Attributes of a request; the resource is ``group/version/plural`` and the namespace ``ns`` unless told."""
    group, version, plural = resource.split("/")
    plural, _, subresource = plural.partition(":")
    named = obj if obj is not None else old
    defaults: dict[str, Any] = {
        "operation": CREATE,
        "kind": GroupVersionKind(group, version, plural.rstrip("s").capitalize()),
        "resource": GroupVersionResource(group, version, plural),
        "subresource": subresource,
        "namespace": "ns",
        "name": ((named or {}).get("metadata") or {}).get("name", ""),
        "user": User("alice", groups=("devs",)),
        "object": obj,
        "old_object": old,
        "options": {},
        "dry_run": False,
    }
    return Attributes(**{**defaults, **more})


def pod(name: str = "p", **spec: Any) -> Object:
    spec.setdefault("containers", [{"name": "c", "image": "img", "resources": {}}])
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


async def refusal(action: Awaitable[None]) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await action
    return caught.value


@pytest.fixture
def make_request() -> Callable[..., Attributes]:
    return request_for


@pytest.fixture
def make_pod() -> Callable[..., Object]:
    return pod


@pytest.fixture
def refused() -> Callable[[Awaitable[None]], Awaitable[StatusError]]:
    return refusal
