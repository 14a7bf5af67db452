"""How cost grows: ``growth.py [--most 40000] [--start 150000]``.

The same few requests in one process, without sockets, with ever more objects, namespaces, definitions, fields,
managers, history, watches, role bindings, webhooks and policies. Figures are processor time of the process, so that
other processes matter little. A row grows linearly or better when its figure for one object (or request) stays where it
is from column to column.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import crds
import orjson
import uvloop
from request_path import Sink

from pilothouse.net.server import HttpServer
from pilothouse.process.garbage import THRESHOLDS
from pilothouse.registry.store.store import Store
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.testing.in_process import InProcessServer

_PIECE = 128 * 1024
RBAC, ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/{}/configmaps"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def value_of(name: str, namespace: str = "default", size: int = 2_600) -> bytes:
    """A stored config map about as large as a pod."""
    metadata = {"name": name, "namespace": namespace, "uid": f"{hash(name) & (1 << 48) - 1:032x}"[:32]}
    uid = metadata["uid"]
    metadata["uid"] = f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}"
    metadata["creationTimestamp"] = "2026-01-02T03:04:05Z"
    obj = {"metadata": {**metadata, "labels": {"app": f"app-{len(name)}"}}, "data": {"a": "x" * size}}
    return b'{"kind":"ConfigMap","apiVersion":"v1",' + orjson.dumps(obj)[1:]


async def fill(store: Store, first: int, count: int) -> None:
    """Put objects into the store without the way through the server."""
    for start in range(first, first + count, 200):
        numbers = range(start, min(start + 200, first + count))
        names = [f"map-{number:07d}" for number in numbers]
        await asyncio.gather(*(store.cache.create(store.key("default", name), value_of(name)) for name in names))


async def cost(action: Callable[[], Awaitable[Any]], times: int = 20) -> float:
    """Microseconds of one, the best of three batches."""
    best = float("inf")
    await action()
    for _ in range(3):
        started = time.process_time()
        for _ in range(times):
            await action()
        best = min(best, time.process_time() - started)
    return best / times * 1e6


class Line:
    """A connection without a socket: requests go in one after the other, and their answers come out."""

    def __init__(self, http: HttpServer, token: str = "bench") -> None:
        self._protocol, self._token = http.protocol(), token
        self._protocol.connection_made(Sink(self._receive))
        self._answer, self._wanted = bytearray(), 0
        self._answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def _receive(self, data: bytes) -> None:
        self._answer += data
        if not self._wanted:
            head, _, _ = bytes(self._answer).lower().partition(b"\r\n\r\n")
            self._wanted = len(head) + 4 + int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(self._answer) >= self._wanted:
            self._answered.set_result(int(self._answer[9:12]))

    async def ask(self, method: str, path: str, body: Any, kind: str) -> int:
        """The status of one request."""
        data = b"" if body is None else orjson.dumps(body)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n"
        typed = f"Content-Type: {kind}\r\nContent-Length: {len(data)}\r\n" if data else ""
        self._answer.clear()
        self._wanted, self._answered = 0, asyncio.get_running_loop().create_future()
        request = f"{head}{typed}\r\n".encode() + data
        for start in range(0, len(request), _PIECE):
            self._protocol.data_received(request[start : start + _PIECE])
        return await self._answered

    def close(self) -> None:
        """Let go of the connection."""
        self._protocol.connection_lost(None)


class Watching:
    """A watch on a connection without a socket."""

    def __init__(self, http: HttpServer, path: str) -> None:
        self._protocol = http.protocol()
        self._protocol.connection_made(Sink(self._receive))
        self.heard = asyncio.Event()
        """Set when something comes."""
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer bench\r\n\r\n"
        self._protocol.data_received(head.encode())

    def _receive(self, data: bytes) -> None:
        self.heard.set()

    def close(self) -> None:
        """Let go of the connection."""
        self._protocol.connection_lost(None)


class Growth:
    """The rows."""

    def __init__(self, server: InProcessServer) -> None:
        self._server = server
        self.line = Line(server.process.serving.http)
        self._serial = 0

    async def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> None:
        """One request that succeeds."""
        status = await self.line.ask(method, path, body, content_type)
        assert status < 300, (method, path, status)

    def fresh(self) -> str:
        """A name that is free."""
        self._serial += 1
        return f"fresh-{self._serial}"

    async def objects(self, sizes: list[int]) -> None:
        """Requests among ever more objects of one kind in one namespace."""
        store = self._server.process.cluster.storage.store("", "v1", "configmaps")
        await store.cache.wait_ready()
        maps = MAPS.format("default")
        there = 0
        for size in sizes:
            await fill(store, there, size - there)
            there = size
            gc.collect()
            rows = {
                "get": lambda: self.ask("GET", f"{maps}/map-0000010"),
                "create": lambda: self.ask("POST", maps, {"metadata": {"name": self.fresh()}, "data": {"a": "b"}}),
                "page of 500": lambda: self.ask("GET", f"{maps}?limit=500"),
                "by label, none": lambda: self.ask("GET", f"{maps}?labelSelector=app%3Dnone"),
                "by name": lambda: self.ask("GET", f"{maps}?fieldSelector=metadata.name%3Dmap-0000010"),
            }
            found = [f"{name} {await cost(action):9,.0f}" for name, action in rows.items()]
            listed = await cost(lambda: self.ask("GET", maps), 2)
            print(f"{size:8,d} objects      {'   '.join(found)}   list {listed / size:6.2f} an object", flush=True)

    async def namespaces(self, sizes: list[int]) -> None:
        """A create in the last of ever more namespaces."""
        there = 0
        for size in sizes:
            for number in range(there, size):
                await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": f"space-{number}"}})
            there = size
            maps = MAPS.format(f"space-{size - 1}")
            created = await cost(lambda maps=maps: self.ask("POST", maps, {"metadata": {"name": self.fresh()}}))  # type: ignore[misc]
            print(f"{size:8,d} namespaces   create {created:9,.0f}", flush=True)

    async def fields(self, sizes: list[int]) -> None:
        """A patch and an apply of one field of ever larger objects."""
        maps = MAPS.format("default")
        for size in sizes:
            name = f"wide-{size}"
            data = {f"key-{number}": "value" for number in range(size)}
            await self.ask("POST", maps, {"metadata": {"name": name}, "data": data})

            async def patch(name: str = name) -> None:
                body = {"data": {"key-0": self.fresh()}}
                await self.ask("PATCH", f"{maps}/{name}", body, content_type=MERGE)

            patched = await cost(patch, 3)
            print(f"{size:8,d} fields       merge patch {patched / size:9.2f} a field", flush=True)

    async def managers(self, sizes: list[int]) -> None:
        """An apply beside ever more managers that apply."""
        maps = MAPS.format("default")
        there = 0
        for size in sizes:
            for number in range(there, size):
                await self._apply(f"{maps}/shared", f"manager-{number}", f"key-{number}", "1")
            there = size
            applied = await cost(lambda: self._apply(f"{maps}/shared", "manager-0", "key-0", self.fresh()), 5)
            print(f"{size:8,d} managers     apply {applied:9,.0f}", flush=True)

    async def _apply(self, path: str, manager: str, key: str, value: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {key: value}}
        await self.ask("PATCH", f"{path}?fieldManager={manager}&force=true", body, content_type=APPLY)

    async def history(self, sizes: list[int]) -> None:
        """An update and an old page after ever more updates of one object."""
        maps, there = MAPS.format("default"), 0
        await self.ask("POST", maps, {"metadata": {"name": "busy"}, "data": {}})

        async def update() -> None:
            await self.ask("PATCH", f"{maps}/busy", {"data": {"a": self.fresh()}}, content_type=MERGE)

        for size in sizes:
            for _ in range(there, size):
                await update()
            there = size
            print(f"{size:8,d} updates      merge patch {await cost(update):9,.0f}", flush=True)

    async def watches(self, sizes: list[int]) -> None:
        """A change beside ever more watches of other objects, and of all objects."""
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "watched"}})
        maps, http = MAPS.format("watched"), self._server.process.serving.http
        for name, query in (("of others", "&fieldSelector=metadata.name%3Dother-{}"), ("of all", "")):
            there: list[Watching] = []
            for size in sizes:
                there += [Watching(http, f"{maps}?watch=1{query.format(each)}") for each in range(len(there), size)]
                for each in there:
                    await each.heard.wait()
                found = await cost(lambda: self._seen(maps, there if name == "of all" else []))  # noqa: B023 - used at once
                print(f"{size:8,d} watches      {name}: create {found:9,.0f}, {found / size:7.2f} a watch", flush=True)
            for each in there:
                each.close()

    async def _seen(self, maps: str, watches: list[Watching]) -> None:
        """A create that all have heard of."""
        for each in watches:
            each.heard.clear()
        await self.ask("POST", maps, {"metadata": {"name": self.fresh()}})
        for each in watches:
            await each.heard.wait()

    async def role_bindings(self, sizes: list[int]) -> None:
        """A get by somebody whom the last of ever more bindings allows it, in a namespace that has all of them."""
        maps, there = MAPS.format("default"), 0
        await self.ask("POST", maps, {"metadata": {"name": "bound"}})
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
        await self.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "bound"}, "rules": [rule]})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bound"}
        line = Line(self._server.process.serving.http, "reader")
        for size in sizes:
            for number in range(there, size):
                user = "reader" if number == size - 1 else f"user-{number}"
                subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
                binding = {"metadata": {"name": f"binding-{number}"}, "roleRef": role, "subjects": [subject]}
                await self.ask("POST", f"{RBAC}/namespaces/default/rolebindings", binding)
            there = size
            await asyncio.sleep(0.5)  # until the authorizer knows of them
            assert await line.ask("GET", f"{maps}/bound", None, "") == 200
            read = await cost(lambda: line.ask("GET", f"{maps}/bound", None, ""))
            print(f"{size:8,d} role bindings  get {read:9,.0f}", flush=True)
        line.close()

    async def webhooks(self, sizes: list[int]) -> None:
        """A create beside ever more webhooks that want something else."""
        rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
        hook = {
            "name": "hook.example.com", "rules": [rule], "clientConfig": {"url": "https://127.0.0.1:1/"},
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }  # fmt: skip
        await self._beside("webhooks", sizes, [(f"{ADMISSION}/validatingwebhookconfigurations", {"webhooks": [hook]})])

    async def policies(self, sizes: list[int]) -> None:
        """A create beside ever more policies that judge something else, and then beside more that judge it."""
        for judged, group, resource in (("others", "apps", "deployments"), ("it", "", "configmaps")):
            rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}
            validations = [{"expression": "object.metadata.name.size() < 100"}]
            policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}
            binding = {"policyName": f"{judged}-%d", "validationActions": ["Deny"]}
            made: list[tuple[str, dict[str, Any]]] = [
                (f"{ADMISSION}/validatingadmissionpolicies", {"spec": policy}),
                (f"{ADMISSION}/validatingadmissionpolicybindings", {"spec": binding}),
            ]
            await self._beside(f"policies of {judged}", sizes, made, f"{judged}-")

    async def _beside(
        self, what: str, sizes: list[int], made: list[tuple[str, dict[str, Any]]], prefix: str = "more-"
    ) -> None:
        maps, there = MAPS.format("default"), 0
        for size in sizes:
            for number in range(there, size):
                for path, body in made:
                    numbered = orjson.loads(orjson.dumps(body).replace(b"%d", str(number).encode()))
                    await self.ask("POST", path, {**numbered, "metadata": {"name": f"{prefix}{number}"}})
            there = size
            await asyncio.sleep(1)
            created = await cost(lambda: self.ask("POST", maps, {"metadata": {"name": self.fresh()}}))
            print(f"{size:8,d} {what}  create {created:9,.0f}, {created / size:7.2f} each", flush=True)

    async def definitions(self, sizes: list[int]) -> None:
        """One more definition among ever more."""
        there = 0
        for size in sizes:
            for number in range(there, size):
                await self.ask("POST", crds.CRDS, crds.definition(number))
            there = size
            await asyncio.sleep(1)
            number = 1_000_000 + size

            async def one_more() -> None:
                nonlocal number
                number += 1
                await self.ask("POST", crds.CRDS, crds.definition(number))

            print(f"{size:8,d} definitions  create {await cost(one_more, 5):9,.0f}", flush=True)


async def measure_start(count: int) -> None:
    """How long a server takes on a store that is full already."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as name:
        path = Path(name) / "store.db"
        backend = SQLiteBackend(str(path))
        await backend.open()
        for start in range(0, count, 200):
            names = [f"map-{number:07d}" for number in range(start, min(start + 200, count))]
            await asyncio.gather(
                *(backend.create(f"/registry/configmaps/default/{each}", value_of(each)) for each in names)
            )
        await backend.close()
        gc.collect()
        before, started, spent = resident(), time.perf_counter(), time.process_time()
        backend = SQLiteBackend(str(path))
        await backend.open()
        opened = time.process_time() - spent
        from pilothouse.registry.storage import StorageFactory
        from pilothouse.storage.cacher import Cacher

        cacher = Cacher(backend, tick_seconds=0)
        await cacher.open()
        store = StorageFactory(cacher, "/registry").store("", "v1", "configmaps")
        await store.cache.wait_ready()
        spent, passed = time.process_time() - spent, time.perf_counter() - started
        assert len(store.cache) == count
        gc.collect()
        held = (resident() - before) / count
        length = sum(len(entry.data) for entry in store.cache.entries(limit=1000)) / 1000
        print(
            f"start with {count:,} objects: store open {opened:.2f} s of CPU, all read {spent:.2f} s of CPU "
            f"({passed:.1f} s passed); {held:,.0f} bytes an object of {length:,.0f}: {held / length:.2f} times",
            flush=True,
        )
        await cacher.close()
        await backend.close()


def resident() -> float:
    """Bytes of memory that this process holds."""
    text = Path("/proc/self/status").read_text()
    return float(text.split("VmRSS:")[1].split()[0]) * 1024


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=40_000, help="the most objects")
    parser.add_argument("--start", type=int, default=150_000, help="with how many objects to start; 0 for none")
    options = parser.parse_args()
    gc.set_threshold(*THRESHOLDS)
    if options.start:
        await measure_start(options.start)
    print("microseconds of CPU a request, unless said otherwise")
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as name:
        tokens = Path(name) / "tokens.csv"
        tokens.write_text('bench,bench,bench-uid,"system:masters"\nreader,reader,reader-uid\n')
        await measure_requests(tokens, options.most)


async def measure_requests(tokens: Path, most: int) -> None:
    """All rows but the start."""
    async with InProcessServer(
        "--controllers=-*", "--authorization-mode=RBAC", f"--token-auth-file={tokens}"
    ) as server:
        growth = Growth(server)
        await growth.objects([most // 16, most // 4, most])
        await growth.namespaces([20, 100, 500])
        await growth.fields([100, 1_000, 10_000])
        await growth.managers([1, 10, 40])
        await growth.history([100, 1_000, 4_000])
        await growth.watches([100, 1_000, 4_000])
        await growth.role_bindings([100, 1_000, 4_000])
        await growth.webhooks([10, 100, 400])
        await growth.policies([10, 50, 200])
        await growth.definitions([20, 100, 300])
        growth.line.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
