"""Starts Pilothouse and kube-apiserver with the same odd files and flags, and compares why they do not start.

    python tools/differential_starts.py --kube-apiserver path --etcd path [--starts 200] [--seed 1] [--file audit]

A file is a sound one with a thing or two changed at random. Who serves has started.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from differential_servers import etcd
from launching import free_port

_SECONDS = 40.0
_SERVING = "Serving securely"
_VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 1.5, "", "a", "A b", "*", [], {}, ["a"], [""], [None], {"a": 1}, "x" * 300, "1h", "-1s",
    "YQ==", "https://x.example", "http://x", "unix:///tmp/x", "v1", "None",
)  # fmt: skip
_KEY = "MDEyMzQ1Njc4OWFiY2RlZg=="
_FILES: dict[str, tuple[str, tuple[str, ...], Any]] = {
    "encryption": (
        "--encryption-provider-config", (), {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": [
                {"resources": ["secrets", "pods.apps"], "providers": [
                    {"aescbc": {"keys": [{"name": "a", "secret": _KEY}, {"name": "b", "secret": _KEY}]}},
                    {"aesgcm": {"keys": [{"name": "c", "secret": _KEY}]}},
                    {"secretbox": {"keys": [{"name": "d", "secret": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}]}},
                    {"kms": {"apiVersion": "v2", "name": "k", "endpoint": "unix:///tmp/x.sock", "timeout": "3s"}},
                    {"identity": {}}]},
                {"resources": ["*.*"], "providers": [{"identity": {}}]}]}),
    "audit": (
        "--audit-policy-file", ("--audit-log-path=/dev/null",), {
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "omitManagedFields": True, "rules": [
                {"level": "Metadata", "users": ["a"], "userGroups": ["b"], "verbs": ["get"], "namespaces": ["n"],
                 "resources": [{"group": "", "resources": ["pods", "pods/log"], "resourceNames": ["p"]}],
                 "omitStages": ["Panic"]},
                {"level": "None", "nonResourceURLs": ["/healthz*", "/x"]}, {"level": "RequestResponse"}]}),
    "admission": (
        "--admission-control-config-file", ("--enable-admission-plugins=EventRateLimit,PodNodeSelector",), {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
                {"name": "PodSecurity", "configuration": {
                    "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
                    "defaults": {"enforce": "baseline", "enforce-version": "latest", "audit": "restricted",
                                 "warn": "privileged", "warn-version": "v1.30"},
                    "exemptions": {"usernames": ["u"], "runtimeClasses": ["r"], "namespaces": ["n"]}}},
                {"name": "EventRateLimit", "configuration": {
                    "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
                    "limits": [{"type": "Namespace", "qps": 5, "burst": 10, "cacheSize": 100},
                               {"type": "Server", "qps": 1, "burst": 2}]}},
                {"name": "ResourceQuota", "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
                    "limitedResources": [{"resource": "pods", "matchContains": ["cpu"], "apiGroup": "",
                                          "matchScopes": [{"scopeName": "PriorityClass", "operator": "In",
                                                           "values": ["a"]}]}]}},
                {"name": "PodNodeSelector", "configuration": {"podNodeSelectorPluginConfig": {
                    "clusterDefaultNodeSelector": "a=b", "n": "c=d"}}}]}),
    "authentication": (
        "--authentication-config", (), {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [
                {"issuer": {"url": "https://issuer.example", "audiences": ["a", "b"],
                            "audienceMatchPolicy": "MatchAny", "discoveryURL": "https://other.example/.well-known/x"},
                 "claimValidationRules": [{"claim": "hd", "requiredValue": "x"},
                                          {"expression": "claims.exp > 1", "message": "m"}],
                 "claimMappings": {"username": {"expression": "claims.sub"}, "groups": {"claim": "g", "prefix": "p:"},
                                   "uid": {"claim": "sub"},
                                   "extra": [{"key": "x.example/a", "valueExpression": "claims.a"}]},
                 "userValidationRules": [{"expression": "user.username != 'x'", "message": "m"}]}],
            "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]}}),
    "authorization": (
        "--authorization-config", (), {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": [
                {"type": "Webhook", "name": "w", "webhook": {
                    "timeout": "3s", "authorizedTTL": "5m", "unauthorizedTTL": "30s", "failurePolicy": "NoOpinion",
                    "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
                    "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/nowhere"},
                    "matchConditions": [{"expression": "request.user == 'x'"},
                                        {"expression": "has(request.resourceAttributes)"}]}},
                {"type": "Node", "name": "node"}, {"type": "RBAC", "name": "rbac"}]}),
    "tracing": (
        "--tracing-config-file", (), {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration", "endpoint": "localhost:4317",
            "samplingRatePerMillion": 100}),
    "egress": (
        "--egress-selector-config-file", (), {
            "apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration", "egressSelections": [
                {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": {
                    "tcp": {"url": "https://p.example:1", "tlsConfig": {"caBundle": "/nowhere"}}}}},
                {"name": "controlplane", "connection": {"proxyProtocol": "GRPC", "transport": {
                    "uds": {"udsName": "/tmp/x"}}}},
                {"name": "etcd", "connection": {"proxyProtocol": "Direct"}}]}),
}  # fmt: skip
_MODE = "--authorization-mode=RBAC"
_TOLD = re.compile(r'^(?:Error: |E\S+ \S+ +\d+ \S+\] (?:"command failed" err=|cannot start: ))(.*)$', re.MULTILINE)
_OWN = (
    (re.compile(r"/\S*?/(?=config\.yaml)"), ""),
    (re.compile(r"\bfile config\.yaml\b"), "file"),
    (re.compile(r"\s+"), " "),
)
"""Where Pilothouse says more: which file it was."""


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]


def odd(choice: random.Random, sound: Any) -> Any:
    """The same with something changed."""
    made = json.loads(json.dumps(sound))
    for _ in range(choice.choice((1, 1, 1, 2))):
        target, key = choice.choice(_places(made))
        match choice.randrange(7):
            case 0 | 1 | 2:
                target[key] = choice.choice(_VALUES)
            case 3:
                del target[key]
            case 4 if isinstance(target, list):
                target.append(target[key])
            case 5 if isinstance(target, dict):
                target["unknown"] = 1
            case _:
                others = [value for holder, at in _places(sound) if at == key for value in [holder[at]]]
                target[key] = choice.choice(others or [None])
        if not _places(made):
            break
    return made


def _why(command: Sequence[str], folder: Path) -> str:
    """Why a server does not start, or that it does."""
    log = folder / "out"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=folder)
        deadline = time.monotonic() + _SECONDS
        while process.poll() is None:
            if _SERVING in log.read_text(errors="replace") or time.monotonic() > deadline:
                process.kill()
                process.wait()
                return "starts"
            time.sleep(0.05)
        told = _TOLD.findall(log.read_text(errors="replace"))
    text = told[-1] if told else f"exit {process.returncode}"
    if text.startswith('"'):
        text = json.loads(text)
    for pattern, instead in _OWN:
        text = pattern.sub(instead, text)
    return str(text).strip()


def main() -> int:
    """Start both so many times; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kube-apiserver", required=True)
    parser.add_argument("--etcd", required=True)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", choices=sorted(_FILES), action="append", help="only these")
    flags = parser.parse_args()
    own = str(Path(sys.executable).with_name("kube-apiserver"))
    choice, seen, refused = random.Random(flags.seed), set(), 0
    with tempfile.TemporaryDirectory(prefix="pilothouse-starts-") as name, ExitStack() as undoing:
        store = undoing.enter_context(etcd(flags.etcd, Path(name)))
        folders = [Path(name, side) for side in ("ours", "theirs")]
        for folder in folders:
            folder.mkdir()
        key = Path(name) / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        common = [
            "--bind-address=127.0.0.1", "--service-account-issuer=https://x", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--disable-admission-plugins=ServiceAccount",
        ]  # fmt: skip
        for number in range(flags.starts):
            kind = choice.choice(sorted(flags.file or _FILES))
            flag, more, sound = _FILES[kind]
            config = Path(name) / "config.yaml"
            config.write_text(json.dumps(odd(choice, sound)))
            given = [*common, *more, f"{flag}={config}", *([] if kind == "authorization" else [_MODE])]
            commands = (
                [own, *given, f"--data-dir={folders[0] / f'data{number}'}", f"--secure-port={free_port()}"],
                [flags.kube_apiserver, *given, f"--etcd-servers={store}", f"--cert-dir={folders[1]}",
                 f"--secure-port={free_port()}"],
            )  # fmt: skip
            ours, theirs = (_why(command, folder) for command, folder in zip(commands, folders, strict=True))
            refused += theirs != "starts"
            shape = re.sub(r'"[^"]*"|\d+', "_", f"{kind} {ours} {theirs}")
            if ours != theirs and shape not in seen:
                seen.add(shape)
                print(f"{kind}: {config.read_text()}\n  ours:   {ours}\n  theirs: {theirs}\n", flush=True)
    print(f"{flags.starts} starts, {refused} refused by kube-apiserver, {len(seen)} kinds of differences")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
