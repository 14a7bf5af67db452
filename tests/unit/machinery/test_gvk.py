"""Groups, versions, kinds and resources as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.gvk import (
    GroupKind,
    GroupResource,
    GroupVersion,
    GroupVersionKind,
    GroupVersionResource,
    parse_group_version,
)

WORD = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", ("", "")), ("/", ("", "")), ("v1", ("", "v1")), ("apps/v1", ("apps", "v1")), ("apps/", ("apps", ""))],
)
def test_parsing(text: str, wanted: tuple[str, str]) -> None:
    assert parse_group_version(text) == wanted


def test_more_than_one_slash() -> None:
    with pytest.raises(ValueError, match="unexpected GroupVersion string: a/b/c"):
        parse_group_version("a/b/c")


@given(st.just("") | WORD, WORD)
def test_parsing_undoes_printing(group: str, version: str) -> None:
    assert parse_group_version(str(GroupVersion(group, version))) == (group, version)


def test_texts() -> None:
    assert str(GroupKind("", "Pod")) == "Pod"
    assert str(GroupKind("apps", "Deployment")) == "Deployment.apps"
    assert str(GroupResource("apps", "deployments")) == "deployments.apps"
    assert str(GroupVersionKind("", "v1", "Pod")) == "/v1, Kind=Pod"
    pods = GroupVersionResource("", "v1", "pods")
    assert (str(pods.group_version), str(pods.group_resource)) == ("v1", "pods")
    deployment = GroupVersionKind("apps", "v1", "Deployment")
    assert (deployment.group_version, deployment.group_kind) == (("apps", "v1"), ("apps", "Deployment"))
