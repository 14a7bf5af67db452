"""kubectl 1.37 creates, applies, diffs and replaces objects of several kinds, on both sides, with its usual checks."""

from __future__ import annotations

import json

import pytest


def labelled(manifest, value):
    return manifest.replace("{name: thing}", f"{{name: thing, labels: {{tier: {value}}}}}")


def test_apply_on_the_client_side(kubectl, run, server, read, kind, manifest):
    namespace = server.namespace(f"apply-client-{kind}")
    apply = ("-n", namespace, "apply", "-f", "-")
    assert kubectl(*apply, stdin=manifest).endswith("/thing created\n")
    first = read(namespace, kind)
    # A budget's selector is replaced as a whole, so kubectl always has a patch to send, which then changes nothing.
    again = "configured" if kind == "poddisruptionbudget" else "unchanged"
    assert kubectl(*apply, stdin=manifest).endswith(f"/thing {again}\n")
    assert read(namespace, kind) == first
    assert run("-n", namespace, "diff", "-f", "-", stdin=manifest).returncode == 0
    changed = labelled(manifest, "front")
    diff = run("-n", namespace, "diff", "-f", "-", stdin=changed)
    assert diff.returncode == 1, diff.stderr
    assert "+    tier: front" in diff.stdout
    assert read(namespace, kind) == first
    assert kubectl(*apply, stdin=changed).endswith("/thing configured\n")
    assert read(namespace, kind)["metadata"]["labels"]["tier"] == "front"
    assert kubectl(*apply, stdin=manifest).endswith("/thing configured\n")
    assert "tier" not in read(namespace, kind)["metadata"].get("labels", {})


def test_apply_on_the_server_side(kubectl, server, read, kind, manifest):
    namespace = server.namespace(f"apply-server-{kind}")
    apply = ("-n", namespace, "apply", "--server-side", "-f", "-")
    assert kubectl(*apply, stdin=labelled(manifest, "front")).endswith("/thing serverside-applied\n")
    first = read(namespace, kind)
    kubectl(*apply, stdin=labelled(manifest, "front"))
    assert read(namespace, kind) == first
    refusal = kubectl(*apply, "--field-manager=other", stdin=labelled(manifest, "back"), fails=True)
    assert 'conflict with "kubectl"' in refusal
    assert ".metadata.labels.tier" in refusal
    kubectl(*apply, "--field-manager=other", "--force-conflicts", stdin=labelled(manifest, "back"))
    assert read(namespace, kind)["metadata"]["labels"]["tier"] == "back"
    entries = read(namespace, kind)["metadata"]["managedFields"]
    owners = {e["manager"] for e in entries if "f:tier" in e["fieldsV1"].get("f:metadata", {}).get("f:labels", {})}
    assert owners == {"other"}


@pytest.mark.parametrize("kind", ["deployment", "service", "configmap"])
def test_replace_and_its_conflict(kubectl, server, read, manifests, kind):
    namespace, manifest = server.namespace(f"replace-{kind}"), manifests[kind]
    assert kubectl("-n", namespace, "create", "-f", "-", stdin=manifest).endswith("/thing created\n")
    assert "AlreadyExists" in kubectl("-n", namespace, "create", "-f", "-", stdin=manifest, fails=True)
    stored = read(namespace, kind)
    stored["metadata"]["annotations"] = {"note": "one"}
    replace = ("-n", namespace, "replace", "-f", "-")
    assert kubectl(*replace, stdin=json.dumps(stored)).endswith("/thing replaced\n")
    stored["metadata"]["annotations"] = {"note": "two"}
    assert "the object has been modified" in kubectl(*replace, stdin=json.dumps(stored), fails=True)
    assert read(namespace, kind)["metadata"]["annotations"] == {"note": "one"}
    if kind == "configmap":
        uid = stored["metadata"]["uid"]
        assert kubectl(*replace, "--force", stdin=manifest).endswith("/thing replaced\n")
        assert read(namespace, kind)["metadata"]["uid"] != uid


def test_server_side_apply_takes_over_from_the_client_side(kubectl, server, read):
    namespace = server.namespace("apply-takeover")
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\ndata: {%s}\n"
    kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest % "a: '1', b: '1'")
    kubectl("-n", namespace, "apply", "--server-side", "-f", "-", stdin=manifest % "a: '2'")
    assert read(namespace, "configmap")["data"] == {"a": "2"}


def test_an_unknown_field_is_refused(kubectl, server, read):
    namespace = server.namespace("apply-unknown")
    manifest = "apiVersion: v1\nkind: Service\nmetadata: {name: thing}\nspec: {ports: [{port: 80, colour: red}]}\n"
    refusal = kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest, fails=True)
    assert 'strict decoding error: unknown field "spec.ports[0].colour"' in refusal
    refusal = kubectl("-n", namespace, "apply", "--server-side", "-f", "-", stdin=manifest, fails=True)
    assert '.spec.ports[port=80,protocol="TCP"].colour: field not declared in schema' in refusal
    assert read(namespace, "service") is None
    kubectl("-n", namespace, "apply", "--validate=ignore", "-f", "-", stdin=manifest)
    assert read(namespace, "service") is not None


def test_dry_runs_store_nothing(kubectl, server):
    namespace = server.namespace("apply-dry")
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n"
    for side in ((), ("--server-side",)):
        said = kubectl("-n", namespace, "apply", *side, "--dry-run=server", "-f", "-", stdin=manifest)
        assert said.endswith("(server dry run)\n")
    assert "NotFound" in kubectl("-n", namespace, "get", "configmap", "thing", fails=True)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("deployment", "made", "--image=nginx", "--replicas=3"), "deployment"),
        (("service", "nodeport", "made", "--tcp=80"), "service"),
        (("job", "made", "--image=busybox", "--", "true"), "job"),
        (("cronjob", "made", "--image=busybox", "--schedule=0 * * * *"), "cronjob"),
        (("ingress", "made", "--rule=example.com/*=web:80"), "ingress"),
        (("poddisruptionbudget", "made", "--selector=app=web", "--min-available=1"), "poddisruptionbudget"),
        (("role", "made", "--verb=get", "--resource=pods"), "role"),
        (("rolebinding", "made", "--role=made", "--user=alice"), "rolebinding"),
        (("quota", "made", "--hard=pods=2"), "resourcequota"),
        (("priorityclass", "made", "--value=5"), "priorityclass"),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_create_from_words(kubectl, server, words, kind):
    namespace = server.namespace("create-" + "-".join(words[:2]))
    assert kubectl("-n", namespace, "create", *words).endswith("/made created\n")
    assert kubectl("-n", namespace, "get", kind, "made", "-o", "name").endswith("/made\n")
