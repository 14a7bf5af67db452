"""The official Python client lists, creates, watches, patches and deletes."""

from __future__ import annotations

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException


@pytest.fixture(scope="module")
def core(server):
    return client.CoreV1Api(config.new_client_from_config(str(server.kubeconfig)))


def test_creates_lists_and_deletes(core, server):
    namespace = server.namespace("python-crud")
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="one", labels={"a": "b"}), data={"k": "v"})
    created = core.create_namespaced_config_map(namespace, body)
    assert created.metadata.uid
    listed = core.list_namespaced_config_map(namespace, label_selector="a=b")
    assert [item.metadata.name for item in listed.items] == ["one"]
    core.patch_namespaced_config_map("one", namespace, {"data": {"k": "w"}})
    assert core.read_namespaced_config_map("one", namespace).data == {"k": "w"}
    core.delete_namespaced_config_map("one", namespace)
    with pytest.raises(ApiException) as refusal:
        core.read_namespaced_config_map("one", namespace)
    assert refusal.value.status == 404


def test_watches_from_a_list(core, server):
    namespace = server.namespace("python-watch")
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    for name in ("a", "b"):
        core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name)))
    core.delete_namespaced_config_map("a", namespace)
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=10
    )
    seen = [(event["type"], event["object"].metadata.name) for _, event in zip(range(3), stream, strict=False)]
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


def test_pages_show_one_moment(core, server):
    namespace = server.namespace("python-pages")
    for number in range(7):
        name = f"c{number}"
        core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name)))
    first = core.list_namespaced_config_map(namespace, limit=3)
    core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c9")))
    rest = core.list_namespaced_config_map(namespace, limit=10, _continue=first.metadata._continue)
    names = [item.metadata.name for page in (first, rest) for item in page.items]
    assert names == [f"c{number}" for number in range(7)]
    assert rest.metadata.resource_version == first.metadata.resource_version
