"""What is asked of every new object's metadata, whatever its kind asks."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.resources import table
from pilothouse.apis.strategies import strategy_for
from pilothouse.apis.strategy import Context
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.registry.rest.before_create import before_create

SLASH = "metadata.generateName: Invalid value: \"/a\": may not contain '/'"


@pytest.mark.parametrize(
    ("group_version", "name"),
    [
        ("v1", "replicationcontrollers"),
        ("certificates.k8s.io/v1", "certificatesigningrequests"),
        ("rbac.authorization.k8s.io/v1", "roles"),
    ],
)
def test_prefixes_fit_into_a_path_even_where_the_kind_does_not_care(group_version: str, name: str) -> None:
    resource = next(row for row in table()[parse_group_version(group_version)].resources if row.name == name)
    strategy = strategy_for(resource)
    strategy.prepare_for_create = lambda ctx, obj: None  # type: ignore[method-assign]
    strategy.validate = lambda ctx, obj: []  # type: ignore[method-assign]
    obj: dict[str, Any] = {"metadata": {"name": "a", "generateName": "/a"}, "spec": {}}
    with pytest.raises(StatusError) as refused:
        before_create(resource, strategy, Context(namespace="n" if resource.namespaced else ""), obj)
    causes = (refused.value.details or {})["causes"]
    assert [f"{cause['field']}: {cause['message']}" for cause in causes] == [SLASH]


def test_names_that_are_free_fit_into_a_path_nevertheless() -> None:
    rows = table()[parse_group_version("certificates.k8s.io/v1")].resources
    resource = next(row for row in rows if row.name == "certificatesigningrequests")
    strategy = strategy_for(resource)
    strategy.validate = lambda ctx, obj: []  # type: ignore[method-assign]
    with pytest.raises(StatusError, match=r"may not contain '/'"):
        before_create(resource, strategy, Context(), {"metadata": {"name": "a/b"}, "spec": {}})
    with pytest.raises(StatusError) as refused:
        before_create(resource, strategy, Context(), {"metadata": {"name": "a/b", "labels": {"a": "!"}}, "spec": {}})
    assert [cause["field"] for cause in (refused.value.details or {})["causes"]] == ["metadata.labels"]
