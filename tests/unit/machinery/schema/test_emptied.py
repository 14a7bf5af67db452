"""What structs remember of fields that were given as empty."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pilothouse.apis import types
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.emptied import (
    Emptied,
    as_given,
    forget,
    has_emptied,
    like,
    note_always_written,
    unset,
    without_notes,
)

POLICY = types.struct("networking.v1.NetworkPolicy")
POD = types.struct("core.v1.Pod")
CLAIM = types.struct("resource.v1.ResourceClaim")


def read_pod(spec: Any) -> dict[str, Any]:
    return decode(POD, {"spec": spec}, noting=True)[0]


@pytest.mark.parametrize(
    ("spec", "path", "empty"),
    [
        ({"overhead": {}}, (), {"overhead": {}}),
        ({"containers": [{"args": []}]}, ("containers", 0), {"args": []}),
        ({"containers": [{"resources": {"limits": {}}}]}, ("containers", 0, "resources"), {"limits": {}}),
        ({"volumes": [{"configMap": {"items": []}}]}, ("volumes", 0, "configMap"), {"items": []}),
    ],
)
def test_what_is_left_out_is_remembered_at_its_place(spec: Any, path: tuple[Any, ...], empty: Any) -> None:
    holder = read_pod(spec)["spec"]
    for step in path:
        holder = holder[step]
    assert holder.empty == empty
    assert not holder.keys() & empty.keys()
    (name,) = empty
    assert as_given(holder, name) == empty[name]
    assert as_given(holder, "nothing") is None


def test_empty_bytes_are_remembered_and_empty_texts_are_not() -> None:
    hook = types.struct("admissionregistration.v1.WebhookClientConfig")
    noted = decode(hook, {"caBundle": ""}, noting=True)[0]
    assert as_given(noted, "caBundle") == ""
    assert has_emptied({"webhooks": [noted]})
    assert not has_emptied({"webhooks": [noted]}, but_bytes=True)
    assert decode(types.struct("core.v1.Container"), {"image": ""}, noting=True)[0].__class__ is dict


@pytest.mark.parametrize("spec", [{"containers": [{"name": "a"}]}, {"overhead": None}, {"securityContext": {}}])
def test_ordinary_objects_are_plain_dicts(spec: Any) -> None:
    pod = read_pod(spec)
    assert (pod.__class__, pod["spec"].__class__) == (dict, dict)


def test_nothing_is_remembered_unless_asked_for() -> None:
    assert decode(POD, {"spec": {"overhead": {}}})[0]["spec"].__class__ is dict


def test_the_root_tells_that_there_are_notes() -> None:
    assert isinstance(read_pod({"containers": [{"args": []}]}), Emptied)


def test_notes_are_no_difference_and_are_not_written() -> None:
    noted, plain = read_pod({"overhead": {}}), decode(POD, {"spec": {}})[0]
    assert noted == plain
    assert orjson.loads(orjson.dumps(noted)) == plain
    assert without_notes(noted)["spec"].__class__ is dict
    assert without_notes(plain) is plain


def test_copies_remember() -> None:
    pod = read_pod({"overhead": {}, "containers": [{"args": []}]})
    copied = {**pod, "spec": pod["spec"].copy()}
    assert as_given(copied["spec"], "overhead") == {}
    assert as_given(copied["spec"]["containers"][0], "args") == []
    assert isinstance(like({**pod}, pod), Emptied)
    assert like({}, {}).__class__ is dict


def test_forgetting_leaves_plain_structs() -> None:
    pod = read_pod({"overhead": {}, "containers": [{"args": []}]})
    before = orjson.dumps(pod)
    forget(pod)
    assert not has_emptied(pod)
    assert (pod["spec"].__class__, pod["spec"]["containers"][0].__class__) == (dict, dict)
    assert orjson.dumps(pod) == before


def test_a_field_that_has_got_a_value_is_not_empty() -> None:
    spec = read_pod({"overhead": {}})["spec"]
    assert has_emptied(spec)
    spec["overhead"] = {"cpu": "1"}
    assert not has_emptied(spec)
    unset(spec, "overhead")
    assert as_given(spec, "overhead") is None


def test_lists_that_are_written_even_when_empty_are_equal_to_none() -> None:
    claim = decode(CLAIM, {"spec": {"devices": {"requests": []}}}, noting=True)[0]
    assert claim["spec"]["devices"] == {"requests": []}
    note_always_written(CLAIM, claim)
    assert claim["spec"]["devices"] == {"requests": None}
    assert as_given(claim["spec"]["devices"], "requests") == []


def test_notes_are_found_at_any_depth() -> None:
    rules = [{"ports": [{"port": 80}], "from": [{"podSelector": {"matchLabels": {}}}]}]
    policy = decode(POLICY, {"spec": {"ingress": rules}}, noting=True)[0]
    assert has_emptied(policy["spec"])
    assert not has_emptied(decode(POLICY, {"spec": {"ingress": [{"from": [{"podSelector": {}}]}]}}, noting=True)[0])


def test_others_see_lists_that_are_written_even_when_empty() -> None:
    claim = decode(CLAIM, {"spec": {"devices": {"requests": [], "constraints": []}}}, noting=True)[0]
    note_always_written(CLAIM, claim)
    assert without_notes(claim)["spec"]["devices"] == {"requests": []}
