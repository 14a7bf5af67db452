"""``--egress-selector-config-file``: what is refused, and which way each kind of traffic takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.net.dialing import DirectRoute
from pilothouse.net.dialing.konnectivity import KonnectivityRoute
from pilothouse.net.dialing.tunnels import HttpConnectRoute
from pilothouse.options.egress import EgressSelectorOptions

HEAD = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n"


def options(tmp_path: Path, text: str) -> EgressSelectorOptions:
    path = tmp_path / "egress.yaml"
    path.write_text(text)
    return EgressSelectorOptions(config_file=str(path))


def test_routes(tmp_path: Path) -> None:
    made = options(
        tmp_path,
        HEAD
        + "- {name: cluster, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /k.sock}}}}\n"
        + "- {name: controlplane, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /h.sock}}}}\n"
        + "- {name: etcd, connection: {proxyProtocol: Direct}}\n",
    )
    assert made.validate(set()) == []
    egress = made.build()
    routes = [each._route for each in (egress.cluster, egress.control_plane, egress.etcd)]
    assert [type(route) for route in routes] == [KonnectivityRoute, HttpConnectRoute, DirectRoute]
    assert isinstance(EgressSelectorOptions().build().cluster._route, DirectRoute)


@pytest.mark.parametrize(
    ("selections", "words"),
    [
        (
            "- {name: cluster, connection: {proxyProtocol: SSH}}",
            'service.connection.protocol: Unsupported value: "SSH"',
        ),
        ("- {name: other, connection: {proxyProtocol: Direct}}", 'service.connection: Unsupported value: "other"'),
        (
            "- {name: etcd, connection: {proxyProtocol: Direct}}\n- {name: Etcd, connection: {proxyProtocol: Direct}}",
            'service.connection[1]: Duplicate value: "etcd"',
        ),
        (
            "- {name: etcd, connection: {proxyProtocol: Direct, transport: {}}}",
            "config must be absent for direct connect",
        ),
        ("- {name: etcd, connection: {proxyProtocol: GRPC}}", "transport must be set for GRPC"),
        (
            "- {name: etcd, connection: {proxyProtocol: GRPC, transport: {tcp: {url: 'http://x'}}}}",
            "UDS must be set with GRPC",
        ),
        (
            "- {name: etcd, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'ftp://x'}}}}",
            "supported connection protocols are http:// and https://",
        ),
        (
            "- {name: etcd, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://x'}}}}",
            "TLSConfig must be present when using HTTPS",
        ),
        ("- {name: etcd, connexion: {}}", 'unknown field "egressSelections[0].connexion"'),
    ],
)
def test_refusals(tmp_path: Path, selections: str, words: str) -> None:
    (error,) = options(tmp_path, HEAD + selections).validate(set())
    assert words in error


def test_files_that_are_none(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    assert EgressSelectorOptions(config_file=missing).validate(set()) == [
        f"egress-selector-config-file {missing} does not exist"
    ]
    assert "EgressSelectorConfiguration" in options(tmp_path, "kind: Other\n").validate(set())[0]
