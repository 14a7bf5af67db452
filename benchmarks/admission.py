"""Measures what admission adds to a create: ``admission.py [--rounds 2000] [--profile]``.

Runs both phases of the default plug-ins, without webhooks, policies and quotas, over a fresh store in this process.
Each figure is the best of several batches, in microseconds a request; garbage is collected as rarely as in the server.
The exit code is 1 when a figure is worse than its aim.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from pilothouse.admission.catalogue import load_catalogue
from pilothouse.admission.chain import AdmissionChain
from pilothouse.admission.environment import Environment
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery.gvk import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.user import User
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.cacher import Cacher

AIMS = {"pod": 60.0, "config map": 15.0}
BATCHES = 7
NAMESPACE = "default"
CONTAINER = {
    "name": "main",
    "image": "registry.example.com/app:1",
    "ports": [{"containerPort": 80, "protocol": "TCP"}],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
OBJECTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pod": (
        "Pod",
        "pods",
        {
            "metadata": {"name": "x", "namespace": NAMESPACE, "labels": {"app": "x"}},
            "spec": {
                "containers": [CONTAINER],
                "restartPolicy": "Always",
                "dnsPolicy": "ClusterFirst",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
            "status": {"phase": "Pending"},
        },
    ),
    "config map": (
        "ConfigMap",
        "configmaps",
        {"metadata": {"name": "x", "namespace": NAMESPACE}, "data": {"key": "value"}},
    ),
}


async def put(storage: StorageFactory, plural: str, namespace: str, name: str, **body: Any) -> None:
    """Store an object past all rules."""
    store = storage.store("", "v1", plural)
    await store.cache.wait_ready()
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    data = store.codec.encode({"metadata": metadata, **body})
    await store.cache.create(store.key(namespace, name), store.codec.to_stored(data))


def requests(title: str, rounds: int) -> list[Attributes]:
    """Creates, each with an object of its own."""
    kind, plural, obj = OBJECTS[title]
    user = User("admin", groups=("system:masters",))
    data = orjson.dumps(obj)
    return [
        Attributes(
            operation=CREATE,
            kind=GroupVersionKind("", "v1", kind),
            resource=GroupVersionResource("", "v1", plural),
            subresource="",
            namespace=NAMESPACE,
            name="x",
            user=user,
            object=orjson.loads(data),
            old_object=None,
            options={},
            dry_run=False,
        )
        for _ in range(rounds)
    ]


async def admit(chain: AdmissionChain, batch: list[Attributes]) -> None:
    """Both phases for each request."""
    for attributes in batch:
        await chain.admit(attributes)
        await chain.validate(attributes)


async def measure(rounds: int, around: Callable[[str], Any] | None) -> dict[str, float]:
    """Microseconds by kind of object."""
    with tempfile.TemporaryDirectory() as folder:
        backend = SQLiteBackend(str(Path(folder) / "store.db"))
        await backend.open()
        cacher = Cacher(backend)
        await cacher.open()
        storage = StorageFactory(cacher)
        await put(storage, "namespaces", "", NAMESPACE, spec={}, status={"phase": "Active"})
        await put(storage, "serviceaccounts", NAMESPACE, "default")
        catalogue = load_catalogue()
        chain = AdmissionChain(catalogue.make(catalogue.select((), ()), Environment(storage), {}))
        found = {}
        for title in OBJECTS:
            await admit(chain, requests(title, 10))
            best = float("inf")
            for _ in range(BATCHES):
                batch = requests(title, rounds)
                started = time.perf_counter()
                await admit(chain, batch)
                best = min(best, time.perf_counter() - started)
            found[title] = best / rounds * 1e6
            if around is not None:
                batch = requests(title, rounds)
                with around(title):
                    await admit(chain, batch)
        await chain.close()
        await cacher.close()
        await backend.close()
    return found


class Profile:
    """Prints where the time of a block goes."""

    def __init__(self, title: str) -> None:
        import cProfile

        self._title, self._profile = title, cProfile.Profile()

    def __enter__(self) -> None:
        self._profile.enable()

    def __exit__(self, *error: object) -> None:
        import pstats

        self._profile.disable()
        print(self._title)
        pstats.Stats(self._profile).sort_stats("tottime").print_stats(25)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    gc.set_threshold(25_000, 20, 25)
    found = asyncio.run(measure(arguments.rounds, Profile if arguments.profile else None))
    for title, micros in found.items():
        print(f"{title:12} {micros:6.1f} µs   aim {AIMS[title]:.0f} µs")
    return int(any(micros > AIMS[title] for title, micros in found.items()))


if __name__ == "__main__":
    sys.exit(main())
