"""What is refused when a server is declared, and what its kinds do at other versions."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.library import APIServer, Column, Group, Kind, Object, Strategy, Version
from pilothouse.library.declarations import Scale
from pilothouse.library.definitions import additions_of, definition_of
from pilothouse.library.version_hooks import VersionHooks

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def kind(**given: Any) -> Kind:
    return Kind(**{"name": "Box", "versions": [Version(name="v1", schema=ANY)], **given})


def test_names_are_made_up() -> None:
    crd = definition_of("example.com", kind(short_names=["bx"], scale=Scale(".spec.n", ".status.n")))
    assert crd["spec"]["names"] == {
        "plural": "boxs", "singular": "box", "kind": "Box", "listKind": "BoxList", "shortNames": ["bx"],
    }  # fmt: skip
    scale = crd["spec"]["versions"][0]["subresources"]["scale"]
    assert scale == {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}


@pytest.mark.parametrize(
    "given",
    [
        {"versions": [Version(name="v1", schema={"type": "object", "properties": {"a": {}}})]},
        {"versions": [Version(name="1", schema=ANY)]},
        {"plural": "Not Good"},
        {"storage_version": "v2"},
        {"columns": [Column("A", ".a", type="nonsense")]},
    ],
)
def test_wrong_declarations_are_refused_at_once(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Box in example"):
        APIServer(name="x", groups=[Group("example.com", [kind(**given)])])


class Doubling(Strategy):
    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["size"] *= 2


def test_a_strategy_sees_the_storage_version_alone() -> None:
    old = Version(
        name="v1alpha1",
        schema=ANY,
        to_storage=lambda obj: {"size": obj["length"]},
        from_storage=lambda obj: {"length": obj["size"]},
    )
    hooks = VersionHooks(old, Doubling(), stored=False)
    obj = {"apiVersion": "example.com/v1alpha1", "kind": "Box", "metadata": {"name": "a"}, "length": 3}
    hooks.prepare_for_create(Context(), obj)
    assert obj == {"apiVersion": "example.com/v1alpha1", "kind": "Box", "metadata": {"name": "a"}, "length": 6}


def test_conversion_goes_through_the_storage_version() -> None:
    def version(name: str, field: str) -> Version:
        return Version(
            name=name,
            schema=ANY,
            to_storage=lambda obj: {"size": obj[field]},
            from_storage=lambda obj: {field: obj["size"]},
        )

    declared = kind(versions=[Version(name="v1", schema=ANY), version("v1beta1", "b"), version("v1alpha1", "a")])
    convert = additions_of(declared, None).convert
    assert convert is not None
    assert convert({"a": 1}, "v1alpha1", "v1beta1") == {"b": 1}
    assert convert({"a": 1}, "v1alpha1", "v1") == {"size": 1}
    assert convert({"size": 1}, "v1", "v1beta1") == {"b": 1}
