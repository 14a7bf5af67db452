"""The pages for Prometheus: families of a real server, and what contrib/ asks for."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilothouse.testing.in_process import InProcessServer

CONTRIB = Path(__file__).parent.parent.parent / "contrib"
FAMILY = re.compile(r"\b((?:apiserver|kubernetes|pilothouse|process|etcd|version|workqueue|rest_client)_[a-z0-9_]+)")
SERIES = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-z_]+="(\\.|[^"\\])*",?)*\})? (NaN|[-+0-9.e]+|\+Inf)')


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer() as server:
        for path in ("/readyz", "/api/v1/namespaces", "/api/v1/namespaces/default", "/metrics/slis"):
            assert server.call("GET", path).status == 200
        yield server


def families(page: str) -> dict[str, str]:
    return dict(line.split()[2:4] for line in page.splitlines() if line.startswith("# TYPE"))


def test_the_page_is_well_formed(server: InProcessServer) -> None:
    page = server.call("GET", "/metrics").body.decode()
    seen: set[str] = set()
    for line in page.splitlines():
        if not line.startswith("#"):
            assert SERIES.fullmatch(line), line
            name = line.rpartition(" ")[0]
            assert name not in seen, f"{name} is shown twice"
            seen.add(name)
    kinds = families(page)
    assert list(kinds) == sorted(kinds)
    assert all(name.endswith("_total") or kind != "counter" for name, kind in kinds.items() if "pilothouse" in name)


def test_families_of_requests_storage_and_the_process(server: InProcessServer) -> None:
    page = server.call("GET", "/metrics").body.decode()
    labels = 'group="",version="v1",resource="namespaces",subresource="",scope="resource",component="apiserver"'
    assert f'apiserver_response_sizes_count{{verb="GET",{labels}}} ' in page
    assert f'apiserver_request_sli_duration_seconds_count{{verb="GET",{labels}}} ' in page
    assert 'apiserver_resource_objects{group="",resource="namespaces"} 4\n' in page
    assert 'apiserver_resource_objects{group="rbac.authorization.k8s.io",resource="clusterroles"} ' in page
    assert 'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 1\n' in page
    assert 'version_info{binary="1.37.0",component="kube",emulation="1.37",min_compat="1.36"} 1\n' in page
    kinds = families(page)
    assert {name: kinds[name] for name in ("process_cpu_seconds_total", "process_resident_memory_bytes")} == {
        "process_cpu_seconds_total": "counter",
        "process_resident_memory_bytes": "gauge",
    }


def test_service_level_indicators(server: InProcessServer) -> None:
    page = server.call("GET", "/metrics/slis").body.decode()
    assert families(page) == {"kubernetes_healthcheck": "gauge", "kubernetes_healthchecks_total": "counter"}
    assert 'kubernetes_healthcheck{name="ping",type="readyz"} 1\n' in page
    assert 'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} ' in page


def test_streams_are_counted_while_they_last(server: InProcessServer) -> None:
    def count() -> str:
        page = server.call("GET", "/metrics").body.decode()
        found = re.search(r'apiserver_longrunning_requests\{verb="WATCH",[^}]*resource="secrets"[^}]*\} (\d+)', page)
        return found[1] if found else "none"

    assert count() == "none"
    assert server.call("GET", "/api/v1/secrets?watch=1&timeoutSeconds=1").status == 200
    assert count() == "0"


def test_families_of_the_store_watches_and_controllers(server: InProcessServer) -> None:
    ranges = "/api/v1/namespaces/default/limitranges"
    assert (
        server.call(
            "POST", f"{ranges}?fieldValidation=Strict", {"metadata": {"name": "counted"}, "spec": {"limits": []}}
        ).status
        == 201
    )
    assert server.call("GET", f"{ranges}?labelSelector=a%3Db").json["items"] == []
    watch = "watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    assert server.call("GET", f"{ranges}?{watch}").status == 200
    page = server.call("GET", "/metrics").body.decode()
    named = 'group="",resource="limitranges"'
    for line in (
        f'etcd_request_duration_seconds_count{{operation="create",{named}}} 1',
        f'etcd_requests_total{{operation="create",{named}}} 1',
        f"apiserver_watch_cache_events_received_total{{{named}}} 1",
        f"apiserver_watch_cache_initializations_total{{{named}}} 1",
        f'apiserver_storage_list_total{{{named},storage="watchcache",index=""}} 1',
        f'apiserver_storage_list_returned_objects_total{{{named},storage="watchcache"}} 0',
        f'apiserver_storage_list_evaluated_objects_total{{{named},storage="watchcache"}} 1',
        f"apiserver_init_events_total{{{named}}} 1",
        'apiserver_watch_events_total{group="",version="v1",resource="limitranges"} 2',
        'apiserver_watch_list_duration_seconds_count{group="",version="v1",resource="limitranges",scope="namespace"} 1',
        'field_validation_request_duration_seconds_count{field_validation="Strict"} 1',
        "apiserver_tls_handshake_errors_total 0",
    ):
        assert f"{line}\n" in page, line
    assert re.search(r'^workqueue_adds_total\{name="[^"]+"\} [1-9]', page, re.MULTILINE)
    assert re.search(r'^informer_store_resource_version\{[^}]*resource="apiservices"[^}]*\} [1-9]', page, re.MULTILINE)
    assert re.search(r'^apiserver_storage_size_bytes\{storage_cluster_id="sqlite"\} [1-9]', page, re.MULTILINE)
    assert re.search(
        r'^apiserver_request_filter_duration_seconds_count\{filter="authorization"\} \d', page, re.MULTILINE
    )
    assert re.search(
        r'^registered_metrics_total\{stability_level="ALPHA",deprecated_version=""\} \d{3}$', page, re.MULTILINE
    )
    assert re.search(r"^apiserver_client_certificate_expiration_seconds_count [1-9]", page, re.MULTILINE)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_no_fault_but_names_that_are_not_ours(server: InProcessServer) -> None:
    page = server.call("GET", "/metrics").body
    found = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True).stdout.decode()
    names = {line.split()[0] for line in (Path(__file__).parent / "metric_families.txt").read_text().splitlines()}
    assert {line.split()[0] for line in found.splitlines()} <= names, found
    assert subprocess.run(["promtool", "check", "rules", CONTRIB / "alerts.yaml"], capture_output=True).returncode == 0


def test_contrib_asks_for_families_that_there_are(server: InProcessServer) -> None:
    shown = families(server.call("GET", "/metrics").body.decode()) | families(
        server.call("GET", "/metrics/slis").body.decode()
    )
    # These are shown once something has gone wrong.
    shown |= {"apiserver_flowcontrol_rejected_requests_total": "counter"}
    shown |= {"rest_client_request_duration_seconds": "histogram"}  # and this once a webhook was asked
    dashboard = json.loads((CONTRIB / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += re.findall(r"expr: (.*(?:\n {10,}.*)*)", (CONTRIB / "alerts.yaml").read_text())
    for expression in asked:
        for name in FAMILY.findall(expression):
            assert re.sub(r"_(bucket|count|sum)$", "", name) in shown, name


def test_families_of_kube_apiserver_have_its_types_labels_and_buckets(server: InProcessServer) -> None:
    """Whatever is shown under one of its names is what its users know; what is missing is told in the docs."""
    page = server.call("GET", "/metrics").body.decode()
    shown = families(page)
    for line in (Path(__file__).parent / "metric_families.txt").read_text().splitlines():
        name, kind, labels, buckets = line.split()
        if name not in shown or name.startswith("process_"):
            continue
        assert shown[name] == kind, name
        series = re.findall(rf"^{name}(?:_bucket)?\{{(.*)\}} ", page, re.MULTILINE)
        expected = set() if labels == "-" else set(labels.split(","))
        assert {frozenset(re.findall(r'(\w+)="', each)) - {"le"} for each in series} <= {frozenset(expected)}, name
        if kind == "histogram":
            bounds = {float(bound) for each in series for bound in re.findall(r'le="([^"]+)"', each)}
            assert bounds == {float(bound) for bound in buckets.split(",")}, name


def test_flags_of_the_page(tmp_path: Path) -> None:
    """Labels from a file, families of the release before, and one that is left out."""
    allowed = tmp_path / "allowed.yaml"
    allowed.write_text('"apiserver_request_total,resource": "pods"\n')
    flags = ("--show-hidden-metrics-for-version=1.36", "--disabled-metrics=apiserver_response_sizes")
    with InProcessServer(f"--allow-metric-labels-manifest={allowed}", *flags) as server:
        for path in ("/api/v1/pods", "/api/v1/configmaps", "/api/v1/secrets", "/apis/apps/v1/deployments"):
            assert server.call("GET", path).status == 200
        page = server.call("GET", "/metrics").body.decode()
    requests = [line for line in page.splitlines() if line.startswith("apiserver_request_total{")]
    assert {name for line in requests for name in re.findall(r'\bresource="([^"]*)"', line)} == {"pods", "unexpected"}
    assert 'apiserver_storage_objects{resource="deployments.apps"} 0\n' in page
    assert 'apiserver_cache_list_total{group="",resource="secrets",index=""} ' in page
    assert "apiserver_response_sizes" not in page
    assert "\ndisabled_metrics_total 1\n" in page


def test_a_file_of_labels_that_cannot_be_used_is_not_minded(tmp_path: Path) -> None:
    nested = tmp_path / "allowed.yaml"
    nested.write_text("allowListMapping:\n  a,b: c\n")
    for path in (tmp_path / "missing.yaml", nested):
        with InProcessServer(f"--allow-metric-labels-manifest={path}") as server:
            assert server.call("GET", "/metrics").status == 200


MESSAGES = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=compact-text"


def test_native_histograms_come_in_messages(server: InProcessServer) -> None:
    path, asked = "/metrics?name[]=apiserver_request_duration_seconds", {"accept": MESSAGES}
    answer = server.call("GET", path, headers=asked)
    assert answer.headers["content-type"].startswith("application/vnd.google.protobuf; proto=io.prometheus.client")
    families = answer.body.decode().splitlines()
    assert [line.partition(" ")[0] for line in families] == ['name:"apiserver_request_duration_seconds"']
    assert "bucket:{cumulative_count:" in families[0]
    assert re.search(r"schema:3 zero_threshold:\S+ zero_count:0 positive_span:\{offset:-\d+ ", families[0])
    with InProcessServer("--feature-gates=NativeHistograms=false") as plain:
        shown = plain.call("GET", "/metrics", headers=asked).body
    assert b"bucket:{cumulative_count:" in shown
    assert b"schema:" not in shown


def test_families_are_chosen_and_compressed(server: InProcessServer) -> None:
    path = "/metrics?name[]=version_info&name[]=apiserver_request_total&name[]=none"
    answer = server.call("GET", path, headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert list(families(gzip.decompress(answer.body).decode())) == ["apiserver_request_total", "version_info"]
    nothing = server.call("GET", "/metrics?name[]=none")
    assert (nothing.status, nothing.body, nothing.headers.get("content-type")) == (200, b"", None)


def test_counting_begins_anew(server: InProcessServer) -> None:
    def count() -> str:
        page = server.call("GET", "/metrics?name[]=apiserver_request_total").body.decode()
        found = re.search(r'^apiserver_request_total\{[^}]*resource="podtemplates"[^}]*\} (\d+)$', page, re.MULTILINE)
        return found[1] if found else "none"

    assert server.call("GET", "/api/v1/podtemplates").status == 200
    assert count() == "1"
    answer = server.call("DELETE", "/metrics")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (
        200,
        b"metrics reset\n",
        "text/plain; charset=utf-8",
    )
    assert count() == "none"
    assert server.call("GET", "/api/v1/podtemplates").status == 200
    assert count() == "1"
