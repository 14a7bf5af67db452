"""Compares what Pilothouse and kube-apiserver send to admission webhooks about the same requests.

    python tools/differential_reviews.py --kube-apiserver path --etcd path

Both have one mutating and one validating webhook for everything in a namespace, which are paths of one server here. An
object of each sampled kind is created, patched, applied, replaced and deleted, and connections, bindings, evictions and
tokens are asked for. After each request the reviews of both are compared without what must differ. How often a
deletion is asked about is left out: kube-apiserver tries with what its cache has first.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import golden as recordings
from differential_answers import Peer, Request, normal
from differential_areas import APPLY, MERGE, STRATEGIC
from differential_samples import SAMPLES
from differential_servers import kube_apiserver
from differential_webhooks import Webhook, serving
from launching import free_port, running_server

_TOKEN = "admintoken"
_NAMESPACE = "reviewed"
_CORE = f"/api/v1/namespaces/{_NAMESPACE}"
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
_SIDES = ("ours", "theirs")
_SETTLING_SECONDS = 3.0
_RANDOM = re.compile(r"kube-api-access-\w{5}|\b10\.0\.\d+\.\d+\b")
_REVIEWS: dict[str, list[str]] = {side: [] for side in _SIDES}


class _Listener(Webhook):
    """Allows everything, and remembers what it was asked."""

    def take(self, body: bytes) -> tuple[int, bytes]:
        """Allow what a review asks."""
        review = json.loads(body)
        _, side, phase = self.path.partition("?")[0].split("/")
        _REVIEWS[side].append(f"{phase} {_RANDOM.sub('*', normal(json.dumps(review).encode()))}")
        response = {"uid": review["request"]["uid"], "allowed": True}
        head = {key: review[key] for key in ("apiVersion", "kind")}
        return 200, json.dumps({**head, "response": response}).encode()


def _prepare(peer: Peer, side: str, port: int, authority: str) -> None:
    labels = {"reviewed": "yes"}
    _post(peer, "/api/v1/namespaces", {"metadata": {"name": _NAMESPACE, "labels": labels}})
    _post(peer, f"{_CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    _post(peer, "/api/v1/nodes", {"metadata": {"name": "reviewed"}})
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    for phase in ("mutating", "validating"):
        webhook = {
            "name": f"{phase}.reviews.example",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/{side}/{phase}", "caBundle": authority},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": labels},
            "rules": [{**everything, "scope": "Namespaced"}],
        }
        _post(
            peer,
            f"{_CONFIGURATIONS}/{phase}webhookconfigurations",
            {"metadata": {"name": "reviews"}, "webhooks": [webhook]},
        )


def _post(peer: Peer, path: str, body: dict[str, Any]) -> None:
    answer = peer.say(Request("POST", path, json.dumps(body).encode()))
    if answer.status != 201:
        raise SystemExit(f"{path}: {answer.status} {answer.body[:500]}")


def _requests() -> Iterator[Request]:
    for number, sample in enumerate(SAMPLES):
        if not sample.namespaced:
            continue
        version = sample.body["apiVersion"]
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        base, name = f"{root}/namespaces/{_NAMESPACE}/{sample.resource}", f"o{number}"
        whole = {**sample.body, "metadata": {**sample.body.get("metadata", {}), "name": name}}
        labels = {"name": name, "labels": {"a": "b"}}
        yield _request("POST", f"{base}?fieldManager=one&fieldValidation=Warn", whole)
        yield _request("POST", f"{base}?dryRun=All", {**whole, "metadata": {"name": f"{name}-dry"}})
        yield _request("PATCH", f"{base}/{name}?fieldManager=two", {"metadata": {"annotations": {"a": "b"}}}, MERGE)
        applied = {"apiVersion": version, "kind": sample.body["kind"], "metadata": labels}
        yield _request("PATCH", f"{base}/{name}?fieldManager=three&force=true", applied, APPLY)
        yield _request("PUT", f"{base}/{name}?dryRun=All", {**whole, "metadata": labels})
        yield _request("PATCH", f"{base}/{name}/status", {"status": {"conditions": []}}, MERGE)
        yield _request("DELETE", f"{base}/{name}?dryRun=All&propagationPolicy=Orphan")
        yield _request("DELETE", f"{base}/{name}", {"gracePeriodSeconds": 0})
    pod = f"{_CORE}/pods/p"
    yield _request("POST", f"{_CORE}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [_CONTAINER]}})
    for action in ("exec?command=ls&container=a&tty=true", "attach?container=a", "portforward?ports=80", "proxy/x/y"):
        yield _request("POST", f"{pod}/{action}")
    yield _request("PATCH", f"{pod}/ephemeralcontainers", {"spec": {"ephemeralContainers": [_DEBUGGER]}}, STRATEGIC)
    bound = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "reviewed"}}
    yield _request("POST", f"{pod}/binding?dryRun=All", bound)
    yield _request("POST", f"{_CORE}/bindings", bound)
    yield _request("POST", f"{pod}/eviction", {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 3}})
    yield _request("POST", f"{_CORE}/serviceaccounts/default/token", {"spec": {}})
    yield _request("DELETE", f"{_CORE}/pods?labelSelector=none")


_CONTAINER = {"name": "a", "image": "i"}
_DEBUGGER = {"name": "b", "image": "i"}


def _request(method: str, path: str, body: dict[str, Any] | None = None, kind: str = "application/json") -> Request:
    return Request(method, path, None if body is None else json.dumps(body).encode(), kind)


def _compare(request: Request) -> int:
    """How many reviews differ, which are shown from shortly before they do."""
    ours, theirs = (sorted(set(_REVIEWS[side])) for side in _SIDES)
    for reviews in _REVIEWS.values():
        reviews.clear()
    if len(ours) != len(theirs):
        print(f"{request}\n  {len(ours)} reviews, kube-apiserver {len(theirs)}\n", flush=True)
        return 1
    found = 0
    for mine, yours in zip(ours, theirs, strict=True):
        if mine != yours:
            found += 1
            pairs = enumerate(zip(mine, yours, strict=False))
            at = max(0, next((at for at, (one, other) in pairs if one != other), 0) - 150)
            print(f"{request}\n  ours:   {mine[at : at + 400]}\n  theirs: {yours[at : at + 400]}\n", flush=True)
    return found


def main() -> int:
    """Compare all; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kube-apiserver", required=True)
    parser.add_argument("--etcd", required=True)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pilothouse-differential-") as name, ExitStack() as undoing:
        folder = Path(name)
        recordings.write_files(folder)
        port, theirs = free_port(), free_port()
        common = recordings.flags(folder, port)
        others = [flag for flag in common if not flag.startswith(("--data-dir", "--secure-port"))]
        undoing.enter_context(kube_apiserver(flags.kube_apiserver, flags.etcd, folder, theirs, _TOKEN, others))
        undoing.enter_context(running_server(common, port, _TOKEN, folder / "own.log"))
        webhooks = undoing.enter_context(serving(_Listener, folder))
        authority = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
        peers = tuple(Peer(each, _TOKEN) for each in (port, theirs))
        for peer, side in zip(peers, _SIDES, strict=True):
            _prepare(peer, side, webhooks, authority)
        time.sleep(_SETTLING_SECONDS)  # until kube-apiserver acts by them
        requests = seen = found = 0
        for request in _requests():
            for peer in peers:
                peer.say(request)
            requests, seen = requests + 1, seen + len(_REVIEWS["theirs"])
            found += _compare(request)
    print(f"{requests} requests, {seen} reviews, {found} of them differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
