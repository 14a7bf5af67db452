"""Whole servers on a real etcd: one that loses it and finds it again, and two that see each other's changes."""

import asyncio
import base64
import contextlib
import json
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPSConnection

import pytest

from pilothouse.storage.backends.etcd import EtcdBackend, Transport
from pilothouse.testing.etcd_process import SURVIVES_KILLS, EtcdCluster, find_etcd
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.waiting import until

pytestmark = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PATIENCE_SECONDS = 120.0


@pytest.fixture(scope="module")
def etcd():
    with EtcdCluster() as cluster:
        yield cluster


def on(etcd, *flags):
    return InProcessServer(f"--etcd-servers={','.join(etcd.urls)}", *flags)


def config_map(name, **data):
    return {"metadata": {"name": name}, "data": data}


class Watch:
    """A watch over HTTP, read event by event."""

    def __init__(self, server, path):
        self.connection = HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS, context=context(server))
        self.connection.request("GET", path)
        self.answer = self.connection.getresponse()

    def next(self):
        return json.loads(self.answer.readline())

    def close(self):
        self.connection.close()


def context(server) -> ssl.SSLContext:
    return server.ssl_context()


def test_two_servers_see_one_cluster(etcd):
    with on(etcd) as first, on(etcd) as second:
        created = first.call("POST", CONFIG_MAPS, config_map("shared", a="1"))
        assert created.status == 201
        assert second.call("GET", f"{CONFIG_MAPS}/shared").json == created.json
        version = created.json["metadata"]["resourceVersion"]
        watch = Watch(second, f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
        changed = first.call("PUT", f"{CONFIG_MAPS}/shared", config_map("shared", a="2"))
        assert second.call("PUT", f"{CONFIG_MAPS}/shared", {**created.json, "data": {}}).status == 409
        deleted = second.call("DELETE", f"{CONFIG_MAPS}/shared")
        assert deleted.status == 200
        assert first.call("GET", f"{CONFIG_MAPS}/shared").status == 404
        modified, gone = watch.next(), watch.next()
        watch.close()
        assert (modified["type"], modified["object"]) == ("MODIFIED", {**changed.json})
        assert gone["type"] == "DELETED"


def test_watches_while_etcd_gives_no_answer():
    """Version 0 is what is in memory; what has to be as new as etcd fails in the stream when the watch's time is up."""
    with EtcdCluster() as cluster, on(cluster) as server:
        assert server.call("POST", CONFIG_MAPS, config_map("seen")).status == 201
        cluster.members[0].pause()
        try:
            watch = Watch(server, f"{CONFIG_MAPS}?watch=1&resourceVersion=0")
            assert watch.next()["object"]["metadata"]["name"] == "seen"
            watch.close()
            for newest in ("", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"):
                answer = server.call("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1{newest}")
                failed = answer.json
                assert (answer.status, failed["type"]) == (200, "ERROR")
                told = [failed["object"][name] for name in ("code", "reason", "message")]
                assert told == [500, "InternalError", "context deadline exceeded"]
        finally:
            cluster.members[0].resume()


def test_large_and_small_writes_of_two_servers_are_seen_in_their_order(etcd):
    """Large ones are read aside where they were not written; nobody sees anything older than what was written."""
    policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"

    def write(server, number, size):
        name = f"p{number % 4}"
        ports = [{"ports": [{"port": number + port + 1}]} for port in range(size)]
        policy = {"metadata": {"name": name}, "spec": {"podSelector": {}, "ingress": ports}}
        if number < 4:
            return server.call("POST", policies, policy).json["metadata"]
        return server.call("PUT", f"{policies}/{name}", policy).json["metadata"]

    with on(etcd) as first, on(etcd) as second:
        version = second.call("GET", policies).json["metadata"]["resourceVersion"]
        watch = Watch(second, f"{policies}?watch=1&resourceVersion={version}")
        written = []
        for number in range(40):
            metadata = write(second if number % 3 == 2 else first, number, 900 if number % 4 < 2 else 1)
            written.append((metadata["name"], metadata["resourceVersion"]))
            seen = second.call("GET", f"{policies}/{metadata['name']}").json["metadata"]
            assert (seen["name"], seen["resourceVersion"]) == written[-1]
        events = [watch.next()["object"]["metadata"] for _ in written]
        watch.close()
        assert [(each["name"], each["resourceVersion"]) for each in events] == written
        listed = second.call("GET", policies).json["items"]
        assert [(each["metadata"]["name"], each["metadata"]["resourceVersion"]) for each in listed] == written[-4:]


def test_a_server_takes_over_what_another_left(etcd):
    with on(etcd) as server:
        made = server.call("POST", CONFIG_MAPS, config_map("kept", a="1")).json
        server.establish(
            {
                "metadata": {"name": "gears.etcd.example.com"},
                "spec": {
                    "group": "etcd.example.com",
                    "scope": "Namespaced",
                    "names": {"plural": "gears", "kind": "Gear"},
                    "versions": [
                        {
                            "name": "v1",
                            "served": True,
                            "storage": True,
                            "schema": {
                                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                            },
                        }
                    ],
                },
            }
        )
        gears = "/apis/etcd.example.com/v1/namespaces/default/gears"
        gear = {"apiVersion": "etcd.example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"teeth": 7}}
        gear = server.call("POST", gears, gear).json
    with on(etcd) as server:
        assert server.call("GET", f"{CONFIG_MAPS}/kept").json == made
        until(lambda: server.call("GET", gears).status == 200)
        assert server.call("GET", f"{gears}/g").json == gear


def test_rules_follow_what_another_server_changes(etcd):
    with on(etcd) as first, on(etcd) as second:
        account = "system:serviceaccount:default:reader"
        headers = {"Impersonate-User": account}
        assert second.call("GET", CONFIG_MAPS, headers=headers).status == 403
        role = {"metadata": {"name": "reader"}, "rules": [{"apiGroups": [""], "resources": ["*"], "verbs": ["list"]}]}
        binding = {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        assert first.call("POST", f"{rbac}/roles", role).status == 201
        assert first.call("POST", f"{rbac}/rolebindings", binding).status == 201
        until(lambda: second.call("GET", CONFIG_MAPS, headers=headers).status == 200)


def test_two_servers_never_give_one_address_or_port_twice(etcd):
    services = "/api/v1/namespaces/default/services"
    spec = {"type": "NodePort", "ports": [{"port": 80}]}

    def make(server, number):
        answer = server.call("POST", services, {"metadata": {"name": f"s{number}"}, "spec": spec})
        assert answer.status == 201, answer.body
        return answer.json["spec"]

    with on(etcd) as first, on(etcd) as second, ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: make((first, second)[number % 2], number), range(40)))
        assert len({spec["clusterIP"] for spec in made}) == 40
        assert len({spec["ports"][0]["nodePort"] for spec in made}) == 40


def test_one_address_asked_for_at_two_servers_is_given_once(etcd):
    services = "/api/v1/namespaces/default/services"

    def ask(server, number, address):
        spec = {"clusterIP": address, "ports": [{"port": 80}]}
        answer = server.call("POST", services, {"metadata": {"name": f"asked-{number}"}, "spec": spec})
        return answer.status

    with on(etcd) as first, on(etcd) as second, ThreadPoolExecutor(2) as threads:
        free = []
        for number in range(5):
            spec = {"ports": [{"port": 80}]}
            made = first.call("POST", services, {"metadata": {"name": f"free-{number}"}, "spec": spec}).json
            free.append(made["spec"]["clusterIP"])
        for number in range(5):  # not before all are made: what is free again may be given again
            assert first.call("DELETE", f"{services}/free-{number}").status == 200
        for number, address in enumerate(free):
            until(lambda address=address: _is_free((first, second), address))
            one = threads.submit(ask, first, 2 * number, address)
            other = threads.submit(ask, second, 2 * number + 1, address)
            assert sorted((one.result(), other.result())) == [201, 422]


def _is_free(servers, address):
    path = f"/apis/networking.k8s.io/v1/ipaddresses/{address}"
    return all(server.call("GET", path).status == 404 for server in servers)


@pytest.mark.parametrize("kept_by", ["lease", "master-count"])
def test_endpoints_follow_servers_that_come_and_go(etcd, kept_by):
    def server(number):
        flags = (f"--endpoint-reconciler-type={kept_by}", "--apiserver-count=2", f"--hostname-override=h{number}")
        return on(etcd, f"--advertise-address=192.0.2.{number}", *flags)

    def addresses(asked):
        endpoints = asked.call("GET", "/api/v1/namespaces/default/endpoints/kubernetes").json
        piece = asked.call("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").json
        found = [each["ip"] for subset in endpoints.get("subsets") or () for each in subset["addresses"]]
        return found if found == [ip for each in piece["endpoints"] or () for ip in each["addresses"]] else None

    def identities(asked):
        query = "labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver"
        leases = asked.call("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?{query}").json
        return {each["metadata"]["labels"]["kubernetes.io/hostname"] for each in leases["items"]}

    with server(11) as first:
        until(lambda: addresses(first) == ["192.0.2.11"])
        with server(12):
            until(lambda: addresses(first) == ["192.0.2.11", "192.0.2.12"])
            assert identities(first) == {"h11", "h12"}
        until(lambda: addresses(first) == ["192.0.2.11"])
        assert identities(first) == {"h11"}


def test_a_watch_goes_on_at_another_server(etcd):
    with on(etcd) as first, on(etcd) as second:
        servers = (first, second)
        version = first.call("GET", CONFIG_MAPS).json["metadata"]["resourceVersion"]
        seen = []
        for number in range(6):
            writer, reader = servers[number % 2], servers[(number + 1) % 2]
            assert writer.call("POST", CONFIG_MAPS, config_map(f"turn-{number}")).status == 201
            watch = Watch(reader, f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
            event = watch.next()
            watch.close()
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            version = event["object"]["metadata"]["resourceVersion"]
        assert seen == [("ADDED", f"turn-{number}") for number in range(6)]


def test_what_one_server_compacted_is_gone_for_all(etcd):
    with on(etcd) as first:
        listed = first.call("GET", f"{CONFIG_MAPS}?limit=1").json["metadata"]
        for number in range(3):
            assert first.call("POST", CONFIG_MAPS, config_map(f"newer-{number}")).status == 201

        async def compact():
            backend = EtcdBackend(Transport(etcd.urls))
            await backend.open()
            await backend.compact(await backend.current_revision())
            await backend.close()

        asyncio.run(compact())
        with on(etcd) as second:
            old = f"{CONFIG_MAPS}?resourceVersion={listed['resourceVersion']}&resourceVersionMatch=Exact"
            for server in (first, second):
                answer = server.call("GET", old)
                assert (answer.status, answer.json["reason"]) == (410, "Expired")
            watch = Watch(second, f"{CONFIG_MAPS}?watch=1&resourceVersion={listed['resourceVersion']}")
            event = watch.next()
            watch.close()
            assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_a_full_etcd_takes_no_writes_and_serves_the_rest():
    with EtcdCluster(options=["--quota-backend-bytes=16777216"]) as etcd:
        with on(etcd) as server:
            stored = []
            while len(stored) < 100:
                answer = server.call("POST", CONFIG_MAPS, config_map(f"large-{len(stored)}", a="x" * 900_000))
                if answer.status != 201:
                    break
                stored.append(answer.json["metadata"]["name"])
            assert answer.status == 500
            assert answer.json["message"] == "etcdserver: mvcc: database space exceeded"
            assert server.call("GET", f"{CONFIG_MAPS}/{stored[0]}").status == 200
            assert server.call("GET", "/readyz").status == 200
        with on(etcd) as server:
            assert server.call("GET", f"{CONFIG_MAPS}/{stored[0]}").status == 200
            make_room(etcd.members[0], [f"/registry/configmaps/default/{name}" for name in stored[:-1]])
            until(lambda: server.call("POST", CONFIG_MAPS, config_map("fits")).status == 201)
            assert server.call("GET", f"{CONFIG_MAPS}/{stored[0]}").status == 404
            assert server.call("GET", f"{CONFIG_MAPS}/{stored[-1]}").status == 200


def make_room(member, keys):
    """What an operator does about a full etcd: delete, compact, defragment, disarm."""
    for key in keys:
        answer = member.ask("/v3/kv/deleterange", {"key": base64.b64encode(key.encode()).decode()})
    member.ask("/v3/kv/compaction", {"revision": answer["header"]["revision"], "physical": True})
    member.ask("/v3/maintenance/defragment")
    alarm = {"action": "DEACTIVATE", "memberID": answer["header"]["member_id"], "alarm": "NOSPACE"}
    member.ask("/v3/maintenance/alarm", alarm)


def test_etcd_goes_and_comes_back():
    with EtcdCluster(options=SURVIVES_KILLS) as etcd, on(etcd, "--etcd-readycheck-timeout=200ms") as server:
        (member,) = etcd.members
        before = server.call("POST", CONFIG_MAPS, config_map("before")).json
        version = before["metadata"]["resourceVersion"]
        watch = Watch(server, f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
        member.kill()
        until(lambda: server.call("GET", "/readyz").status == 500)
        assert server.call("GET", "/readyz/etcd-readiness").status == 500
        assert server.call("GET", f"{CONFIG_MAPS}/before?resourceVersion=0").json == before
        refused = server.call("POST", f"{CONFIG_MAPS}?timeout=1s", config_map("meanwhile"))
        assert (refused.status, refused.json["reason"]) == (504, "Timeout")
        member.start()
        member.wait_ready()
        until(lambda: server.call("GET", "/readyz").status == 200)
        after = until(lambda: (a := server.call("POST", CONFIG_MAPS, config_map("after"))).status == 201 and a).json
        event = watch.next()
        watch.close()
        assert (event["type"], event["object"]) == ("ADDED", after)


def test_an_etcd_that_is_set_back_is_read_anew():
    """Somebody restored a backup, or a member lost what it had acknowledged: what is gone is not served any more."""

    def made(name):
        return until(
            lambda: (answer := server.call("POST", CONFIG_MAPS, config_map(name))).status == 201 and answer.json
        )

    with EtcdCluster() as etcd, on(etcd) as server:
        (member,) = etcd.members
        kept = made("kept")
        member.stop()
        backup = member.back_up()
        member.start()
        member.wait_ready()
        lost = [made(f"lost-{number}") for number in range(20)][-1]["metadata"]["resourceVersion"]
        watch = Watch(server, f"{CONFIG_MAPS}?watch=1&resourceVersion={lost}")
        member.kill()
        member.restore(backup)
        member.start()
        member.wait_ready()
        assert watch.answer.readline() == b""  # it ends, and its client lists again
        watch.close()
        until(lambda: server.call("GET", f"{CONFIG_MAPS}/lost-0").status == 404)
        assert server.call("GET", f"{CONFIG_MAPS}/kept").json == kept
        version = made("lost-0")["metadata"]["resourceVersion"]
        assert int(version) < int(lost)
        watch = Watch(server, f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
        after = server.call("PUT", f"{CONFIG_MAPS}/lost-0", config_map("lost-0", again="yes"))
        assert after.status == 200
        assert watch.next()["object"] == after.json
        watch.close()
        until(lambda: server.call("GET", "/readyz").status == 200)


def test_events_may_have_an_etcd_of_their_own(etcd):
    with (
        EtcdCluster() as apart,
        on(etcd, f"--etcd-servers-overrides=/events#{apart.urls[0]}", "--delete-collection-workers=3") as server,
    ):
        about = {
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
            "reason": "R",
            "type": "Normal",
        }
        events = "/api/v1/namespaces/default/events"
        for number in range(5):
            assert server.call("POST", events, {"metadata": {"name": f"e{number}"}, **about}).status == 201
        listed = server.call("GET", events).json
        assert len(listed["items"]) == 5
        assert int(listed["metadata"]["resourceVersion"]) < 10
        assert len(server.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events").json["items"]) == 5
        until(
            lambda: b'apiserver_storage_size_bytes{storage_cluster_id="etcd-0"}' in server.call("GET", "/metrics").body
        )
        assert server.call("DELETE", events).status == 200
        assert server.call("GET", events).json["items"] == []

        shown = server.call("GET", "/readyz?verbose").body
        assert b"[+]etcd-readiness ok\n[+]etcd-override-0 ok\n[+]etcd-override-readiness-0 ok\n" in shown
        apart.members[0].kill()
        until(lambda: server.call("GET", "/readyz").status == 500)
        answer = server.call("GET", "/readyz?verbose&exclude=etcd&exclude=etcd-readiness")
        assert answer.status == 200
        assert b"[+]etcd-override-readiness-0 excluded with etcd-readiness: ok\n" in answer.body
        assert server.call("POST", CONFIG_MAPS, config_map("kept-elsewhere")).status == 201


EGRESS = """
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: etcd
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: PATH}}
"""


class Tunnel:
    """A proxy that leads to one place, whichever name is asked for, and notes the names."""

    def __init__(self, path, port):
        self.port, self.asked = port, []
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += near.recv(1)
        self.asked.append(head.split()[1].decode())
        with near, socket.create_connection(("127.0.0.1", self.port)) as far:
            near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=self._carry, args=(far, near), daemon=True)
            back.start()
            self._carry(near, far)
            back.join()

    @staticmethod
    def _carry(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


def test_etcd_may_be_behind_a_tunnel(etcd, tmp_path):
    """Its name is one that only the far end of the tunnel knows."""
    tunnel = Tunnel(tmp_path / "tunnel", etcd.members[0].client_port)
    (tmp_path / "egress.yaml").write_text(EGRESS.replace("PATH", str(tmp_path / "tunnel")))
    flags = ("--etcd-servers=http://etcd.invalid:2379", f"--egress-selector-config-file={tmp_path / 'egress.yaml'}")
    with InProcessServer(*flags) as server:
        assert server.call("POST", CONFIG_MAPS, config_map("tunnelled")).status == 201
    tunnel.listening.close()
    assert set(tunnel.asked) == {"etcd.invalid:2379"}


def test_without_a_watch_cache_every_read_is_new(etcd):
    with (
        on(etcd) as writer,
        on(etcd, "--watch-cache=false") as always,
        on(etcd, "--watch-cache-sizes=configmaps#0,pods#100") as some,
    ):
        for number in range(20):
            writer.call("POST", CONFIG_MAPS, config_map(f"new{number}"))
            for server in (always, some):
                assert server.call("GET", f"{CONFIG_MAPS}/new{number}?resourceVersion=0").status == 200
        page = always.call("GET", f"{CONFIG_MAPS}?resourceVersion=0&limit=2").json
        assert (len(page["items"]), bool(page["metadata"].get("continue"))) == (2, True)
        whole = writer.call("GET", f"{CONFIG_MAPS}?resourceVersion=0&limit=2").json
        assert len(whole["items"]) > 2


@pytest.mark.parametrize(
    ("media", "begins"),
    [
        ("application/json", b"{"),
        ("application/yaml", b"apiVersion:"),
        ("application/vnd.kubernetes.protobuf", b"k8s\0"),
    ],
)
def test_objects_are_written_as_the_flag_says(etcd, media, begins):
    prefix = f"/{media}"

    async def stored():
        backend = EtcdBackend(Transport(etcd.urls))
        await backend.open()
        try:
            return (await backend.get(f"{prefix}/configmaps/default/typed")).value
        finally:
            await backend.close()

    with on(etcd, f"--storage-media-type={media}", f"--etcd-prefix={prefix}", "--storage-backend=etcd3") as server:
        made = server.call("POST", CONFIG_MAPS, config_map("typed")).json
        assert asyncio.run(stored()).startswith(begins)
        assert server.call("GET", f"{CONFIG_MAPS}/typed").json == made


def test_events_share_a_lease_for_as_long_as_the_flag_says(etcd):
    """etcd tells how many leases there are by their number in its list."""

    def leases():
        connection = HTTPConnection("127.0.0.1", etcd.members[0].client_port, timeout=PATIENCE_SECONDS)
        connection.request("POST", "/v3/lease/leases", "{}")
        found = json.loads(connection.getresponse().read()).get("leases", [])
        connection.close()
        return {each["ID"] for each in found}

    about = {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "reason": "R", "type": "Normal"}
    events = "/api/v1/namespaces/default/events"
    made = {}
    for seconds in (0, 60):
        with on(etcd, f"--lease-reuse-duration-seconds={seconds}", "--endpoint-reconciler-type=none") as server:
            before = leases()
            for number in range(4):
                server.call("POST", events, {"metadata": {"name": f"l{seconds}-{number}"}, **about})
            made[seconds] = len(leases() - before)
    assert made[0] >= 4 > made[60]


@pytest.mark.parametrize(("media", "kept"), [("application/json", []), ("application/vnd.kubernetes.protobuf", None)])
def test_an_empty_list_stays_one_where_storage_can_say_so(etcd, media, kept):
    kind, name = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", "empty"
    prefix = f"/{media.replace('/', '-')}"
    with on(etcd, f"--storage-media-type={media}", f"--etcd-prefix={prefix}") as server:
        body = {"metadata": {"name": name}, "addressType": "IPv4", "endpoints": [], "ports": None}
        made = server.call("POST", kind, body).json
        assert (made["endpoints"], made["ports"]) == (kept, None)
        labels, headers = {"metadata": {"labels": {"a": "b"}}}, {"Content-Type": "application/merge-patch+json"}
        assert server.call("PATCH", f"{kind}/{name}", labels, headers).json["endpoints"] == kept
        same = {"endpoints": []}
        assert server.call("PATCH", f"{kind}/{name}", same, headers).json["metadata"]["generation"] == 2
    with on(etcd, f"--storage-media-type={media}", f"--etcd-prefix={prefix}") as server:
        assert server.call("GET", f"{kind}/{name}").json["endpoints"] == kept
