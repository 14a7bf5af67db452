"""What stands before the sinks of the audit log follows the flags, for the file as for the webhook."""

from __future__ import annotations

import pytest

from pilothouse.audit.log import LogSink
from pilothouse.audit.metrics import AuditMetrics
from pilothouse.audit.sinks import Batching, Forgiving, Truncating
from pilothouse.audit.webhook import WebhookSink
from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.machinery.supervision import Supervisor
from pilothouse.options import complete, parse

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
"""


@pytest.fixture(params=[("log", LogSink), ("webhook", WebhookSink)], ids=["log", "webhook"])
def family(request, tmp_path):
    name, sink = request.param
    (tmp_path / "policy").write_text(POLICY)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    target = (
        f"--audit-log-path={tmp_path}/log" if name == "log" else f"--audit-webhook-config-file={tmp_path}/kubeconfig"
    )

    def build(*flags: str) -> list[object]:
        given = [flag.replace("--audit-", f"--audit-{name}-") for flag in flags]
        options = complete(parse([f"--audit-policy-file={tmp_path}/policy", target, *given]))
        auditing = options.audit.build(OutgoingCalls(), AuditMetrics(), Supervisor("test"))
        assert auditing is not None
        chain = [auditing.sink]
        while hasattr(chain[-1], "_inner"):
            chain.append(chain[-1]._inner)
        return chain

    return build, sink


def test_blocking(family):
    build, sink = family
    assert [type(each) for each in build("--audit-mode=blocking")] == [Forgiving, sink]
    assert [type(each) for each in build("--audit-mode=blocking-strict")] == [sink]


def test_batching_and_truncating(family):
    build, sink = family
    flags = ("mode=batch", "batch-buffer-size=7", "batch-max-size=5", "batch-max-wait=3s", "truncate-enabled")
    chain = build(
        *(f"--audit-{flag}" for flag in flags), "--audit-truncate-max-event-size=9", "--audit-batch-throttle-enable"
    )
    assert [type(each) for each in chain] == [Truncating, Batching, sink]
    truncating, batching = chain[:2]
    assert (truncating._max_event, truncating._max_batch) == (9, 10485760)
    assert (batching._buffer_size, batching._max_size, batching._max_wait) == (7, 5, 3.0)
    assert batching._throttle is not None
    assert batching._concurrent is (sink is WebhookSink)
