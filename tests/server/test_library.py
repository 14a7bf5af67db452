"""Servers of the library: whom they trust, whom they ask, and what is written where."""

from __future__ import annotations

import json
import ssl
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import orjson
import pytest

from pilothouse.library import APIServer, Group, Kind, Version
from pilothouse.machinery import yaml_codec
from pilothouse.machinery.errors import StatusError
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.library_server import InProcessLibraryServer
from pilothouse.testing.waiting import until
from pilothouse.testing.webhooks import Webhooks

SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
KIND = Kind(name="Box", plural="boxes", versions=[Version(name="v1", schema=SCHEMA)])
SERVER = APIServer(name="boxes", groups=[Group("example.com", [KIND])])
PATH = "/apis/example.com/v1/namespaces/default/boxes"
RULE = {"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["boxes"]}
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def ask(server: InProcessServer, path: str, headers: dict[str, str], context: ssl.SSLContext | None = None) -> Any:
    """What the server itself says to somebody it has to find out about."""
    trusting = context or ssl.create_default_context(cafile=str(server.pki.ca_cert))
    connection = HTTPSConnection("127.0.0.1", server.port, timeout=120, context=trusting)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_tokens_are_reviewed_by_the_main_server() -> None:
    with InProcessServer() as main, InProcessLibraryServer(SERVER, main=main) as server:
        main.call("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
        asked = main.call("POST", f"{ACCOUNTS}/robot/token", {"spec": {}})
        bearer = {"Authorization": f"Bearer {asked.json['status']['token']}"}
        status, body = ask(server, PATH, bearer)
        assert status == 403
        assert b"system:serviceaccount:default:robot" in body
        rules = [{"apiGroups": ["example.com"], "resources": ["boxes"], "verbs": ["create", "list"]}]
        roles = "/apis/rbac.authorization.k8s.io/v1"
        main.call("POST", f"{roles}/clusterroles", {"metadata": {"name": "boxes"}, "rules": rules})
        binding = {
            "metadata": {"name": "boxes"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "boxes"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "robot2"}],
        }
        main.call("POST", f"{roles}/clusterrolebindings", binding)
        main.call("POST", ACCOUNTS, {"metadata": {"name": "robot2"}})
        asked = main.call("POST", f"{ACCOUNTS}/robot2/token", {"spec": {}})
        assert ask(server, PATH, {"Authorization": f"Bearer {asked.json['status']['token']}"})[0] == 200
        assert ask(server, PATH, {"Authorization": "Bearer nonsense"})[0] == 401


def test_headers_count_only_from_the_front_proxy() -> None:
    named = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
    with InProcessServer() as main, InProcessLibraryServer(SERVER, main=main) as server:
        status, body = ask(server, PATH, named)
        assert status == 403
        assert b"system:anonymous" in body
        proxy = ssl.create_default_context(cafile=str(server.pki.ca_cert))
        proxy.load_cert_chain(main.pki.front_proxy_client_cert, main.pki.front_proxy_client_key)
        assert ask(server, PATH, named, proxy)[0] == 200
        administrator = ssl.create_default_context(cafile=str(server.pki.ca_cert))
        administrator.load_cert_chain(main.pki.admin_cert, main.pki.admin_key)
        assert ask(server, PATH, {}, administrator)[0] == 200


def test_alone_it_knows_its_administrator_only(tmp_path: Path) -> None:
    with InProcessLibraryServer(SERVER, data_dir=tmp_path) as server:
        assert ask(server, PATH, {})[0] == 403
        assert ask(server, "/healthz", {}) == (200, b"ok")
        assert server.call("POST", PATH, {"metadata": {"name": "a"}, "apiVersion": "example.com/v1", "kind": "Box"})
        paths = json.loads(ask(server, "/", {}, server.ssl_context())[1])["paths"]
        assert "/apis/example.com/v1" in paths
        assert "/api" not in paths
    with InProcessLibraryServer(SERVER, data_dir=tmp_path) as server:
        assert server.call("GET", f"{PATH}/a").status == 200


def test_it_does_not_start_without_knowing_whom_to_trust(tmp_path: Path) -> None:
    with InProcessServer() as main:
        config = main.kubeconfig.read_text().replace(str(main.port), "1")
    kubeconfig = tmp_path / "away.kubeconfig"
    kubeconfig.write_text(config)
    away, tolerant = f"--kubeconfig={kubeconfig}", "--authentication-tolerate-lookup-failure"
    with pytest.raises(StatusError, match="does not answer"), InProcessLibraryServer(SERVER, away):
        pass
    with InProcessLibraryServer(SERVER, away, tolerant) as server:
        assert ask(server, "/readyz", {})[0] == 200


@pytest.mark.usefixtures("kept_log")
def test_wrong_flags_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert SERVER.run(["--secure-port=0"]) == 1
    assert SERVER.run(["--no-such-flag"]) == 1
    said = capsys.readouterr().err
    assert "--secure-port 0 must be between 1 and 65535" in said
    assert "unknown flag: --no-such-flag" in said
    assert SERVER.run(["--help"]) == 0
    assert "--authentication-kubeconfig" in capsys.readouterr().out


def test_nothing_is_created_in_namespaces_that_are_not_there() -> None:
    box = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}}
    with InProcessServer() as main, InProcessLibraryServer(SERVER, main=main) as server:
        server.register(main)
        refused = main.call("POST", PATH.replace("default", "nowhere"), box)
        assert (refused.status, refused.json["message"]) == (404, 'namespaces "nowhere" not found')
        assert main.call("POST", PATH, box).status == 201


@pytest.mark.usefixtures("kept_log")
def test_a_data_folder_belongs_to_one_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with InProcessLibraryServer(SERVER, data_dir=tmp_path):
        assert SERVER.run([f"--data-dir={tmp_path}", "--secure-port=1"]) == 1
    assert str(tmp_path) in capsys.readouterr().err


def test_webhooks_and_policies_of_the_main_server_see_its_kinds() -> None:
    box = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}, "spec": {}}
    rules = {"matchConstraints": {"resourceRules": [RULE]}}
    rules["validations"] = [{"expression": "object.metadata.name != 'c'", "message": "no c"}]
    registration = "/apis/admissionregistration.k8s.io/v1"
    policy = {"metadata": {"name": "no-c"}, "spec": rules}
    binding = {"metadata": {"name": "no-c"}, "spec": {"policyName": "no-c", "validationActions": ["Deny"]}}
    with (
        InProcessServer() as main,
        InProcessLibraryServer(SERVER, main=main) as server,
        closing(Webhooks(main)) as hooks,
    ):
        server.register(main)
        assert main.call("POST", PATH, box).status == 201
        hooks.mutating(
            lambda asked: {**asked["object"], "spec": {"seen": True}}, resources=["boxes"], api_groups=["example.com"]
        )
        hooks.validating(
            lambda asked: "no b" if asked["name"] == "b" else None, resources=["boxes"], api_groups=["example.com"]
        )
        for name, why in (("b", "no b"), ("c", "no c")):
            if name == "c":
                main.call("POST", f"{registration}/validatingadmissionpolicies", policy)
                main.call("POST", f"{registration}/validatingadmissionpolicybindings", binding)
            wrong = {**box, "metadata": {"name": name}}
            until(
                lambda wrong=wrong, why=why: (
                    why in main.call("POST", f"{PATH}?dryRun=All", wrong).json.get("message", "")
                )
            )
        made = main.call("POST", PATH, {**box, "metadata": {"name": "d"}})
        assert (made.status, made.json["spec"]) == (201, {"seen": True})


def test_what_admission_may_not_read_is_told(tmp_path: Path) -> None:
    box = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}}
    with InProcessServer() as main:
        config = json.loads(orjson.dumps(yaml_codec.load(main.kubeconfig.read_bytes())))
        main.call("POST", ACCOUNTS, {"metadata": {"name": "weak"}})
        asked = main.call("POST", f"{ACCOUNTS}/weak/token", {"spec": {}})
        config["users"][0]["user"] = {"token": asked.json["status"]["token"]}
        weak = tmp_path / "weak.kubeconfig"
        weak.write_text(json.dumps(config))
        strong = (f"--{name}-kubeconfig={main.kubeconfig}" for name in ("authentication", "authorization"))
        with InProcessLibraryServer(SERVER, f"--kubeconfig={weak}", *strong) as server:
            server.register(main)
            refused = main.call("POST", PATH, box)
            assert refused.status == 503
            assert 'namespaces is forbidden: User "system:serviceaccount:default:weak"' in refused.json["message"]
