"""Attacks that kube-apiserver has met in the past, each by its number.

Those on connections, proxies and rights are tested where these are, and name their numbers there too; here are the ones
on parsing, and on what one request may cost or see.
"""

from __future__ import annotations

import threading
from typing import Any

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def test_cve_2019_11253_aliases_that_multiply(victim: Any) -> None:
    """A few lines of YAML whose aliases stand for billions of values."""
    lines = ['a0: &a0 ["lol","lol","lol","lol","lol","lol","lol","lol","lol"]']
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bomb\n" + "\n".join(lines) + "\n"
    with victim.attacked("CVE-2019-11253, aliases that multiply"):
        answer = victim.call("POST", MAPS, body.encode(), "application/yaml")
        applied = victim.call("PATCH", f"{MAPS}/bomb?fieldManager=m", body.encode(), "application/apply-patch+yaml")
    assert (answer.status, applied.status) == (400, 400)


def test_cve_2019_11253_deep_json(victim: Any) -> None:
    """Values nested as deep as a body is long."""
    with victim.attacked("CVE-2019-11253, deep values"):
        for opening in (b"[", b'{"a":'):
            body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"x":' + opening * 500_000
            assert victim.call("POST", MAPS, body).status == 400


def test_cve_2019_11254_slow_yaml(victim: Any) -> None:
    """Unclosed brackets and long plain scalars that the parser went over again and again."""
    brackets = [b"[" * 100_000, b"? " * 50_000, b"- " * 50_000, b"!" * 200_000]
    slow = [*brackets, b"a: &b " + b"\n" * 200_000, b'"' + b"\\" * 200_000]
    with victim.attacked("CVE-2019-11254, slow YAML"):
        for body in slow:
            assert victim.call("POST", MAPS, body, "application/yaml").status in (400, 422)


def test_cve_2019_11254_long_yaml_far_down(victim: Any) -> None:
    """Where each value costs as much as it is deep, many of them deep down end nothing in time."""
    body = b"apiVersion: v1\nkind: ConfigMap\nspec: " + b"[" * 9_000 + b"a," * 1_000_000
    with victim.attacked("CVE-2019-11254, a million values in 9,000 lists"):
        answer = victim.call("POST", MAPS, body, "application/yaml")
    assert (answer.status, b"excessive nesting" in answer.body) == (400, True)


def test_cve_2019_1002100_json_patch(victim: Any) -> None:
    """A patch of many operations that copy each other's results."""
    assert victim.call("POST", MAPS, config_map("patched", data={"a": "x" * 1000})).status == 201
    kind = "application/json-patch+json"
    many = [{"op": "add", "path": "/data/a", "value": "x"}] * 20_000
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/b{n}"} for n in range(40)]
    with victim.attacked("CVE-2019-1002100, json patches"):
        assert victim.call("PATCH", f"{MAPS}/patched", many, kind).status in (413, 422)
        assert victim.call("PATCH", f"{MAPS}/patched", doubling, kind).status in (400, 413, 422)


def test_cve_2020_8552_many_requests_for_much(victim: Any) -> None:
    """Requests that cost memory out of proportion, by somebody without any rights."""
    with victim.attacked("CVE-2020-8552, long queries and bodies of strangers"):
        for number in range(20):
            path = f"{MAPS}?fieldSelector={'metadata.name%3Da,' * 2000}metadata.name%3D{number}"
            assert victim.call("GET", path, anonymous=True).status == 403
            assert victim.call("POST", MAPS, b"x" * 1_000_000, anonymous=True).status == 403


def test_cve_2022_3162_other_resources_by_paths(victim: Any) -> None:
    """Names that lead out of the place they name."""
    refused = {"..": 400, "%2e%2e": 400, "%2e": 400, "a%25b": 400, "..%2f..%2fsecrets": 404, "a%2f..%2f..": 404}
    for name, status in refused.items():
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        answers = [
            victim.call("GET", f"{MAPS}/{name}"),
            victim.call("PUT", f"{MAPS}/{name}", body),
            victim.call("PATCH", f"{MAPS}/{name}", {}, "application/merge-patch+json"),
            victim.call("DELETE", f"{MAPS}/{name}"),
        ]
        assert [answer.status for answer in answers] == [status] * 4, name


def test_cve_2019_11247_cluster_objects_through_a_namespace(victim: Any) -> None:
    """Whoever may read a kind in a namespace could read objects of the cluster of that kind."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": "cve.example",
        "scope": "Cluster",
        "names": {"plural": "wides", "kind": "Wide"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    victim.establish({**head, "metadata": {"name": "wides.cve.example"}, "spec": spec})
    wide = {"apiVersion": "cve.example/v1", "kind": "Wide", "metadata": {"name": "secret"}}
    assert victim.call("POST", "/apis/cve.example/v1/wides", wide).status == 201
    for tail in ("wides", "wides/secret"):
        assert victim.call("GET", f"/apis/cve.example/v1/namespaces/default/{tail}").status == 404
    assert victim.call("DELETE", "/apis/cve.example/v1/namespaces/default/wides/secret").status == 404
    assert victim.call("GET", "/apis/cve.example/v1/wides/secret").status == 200


def test_many_at_once(victim: Any) -> None:
    """What one may do does not add up to a freeze when many do it at once."""
    body = b'{"data":[' + b"1," * 1_000_000
    with victim.attacked("eight faulty bodies of 2 MB at once", allowance=200 << 20):
        threads = [threading.Thread(target=victim.call, args=("POST", MAPS, body)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
