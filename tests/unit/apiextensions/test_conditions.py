"""Names within a group, and the conditions that follow from a definition."""

from __future__ import annotations

import pytest

from pilothouse.apiextensions.establishing import establish, set_approval
from pilothouse.apiextensions.naming import TakenNames, accept_names
from pilothouse.apis.apiextensions.custom_resource_definition.definitions import condition, is_true


def crd(plural="apples", kind="Apple", *, group="example.com", accepted=None, **names):
    wanted = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List", **names}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": wanted},
        "status": {"acceptedNames": accepted or {"plural": "", "kind": ""}},
    }


def taken(*others):
    return TakenNames([{"status": {"acceptedNames": each["spec"]["names"]}} for each in others])


def test_free_names_are_accepted_and_lead_to_establishment():
    mine = crd(shortNames=["ap"], categories=["all"])
    assert accept_names(mine, taken(), "1")
    assert mine["status"]["acceptedNames"] == mine["spec"]["names"]
    assert condition(mine, "NamesAccepted")["reason"] == "NoConflicts"
    assert condition(mine, "Established")["reason"] == "Installing"
    assert establish(mine, "2")
    assert condition(mine, "Established")["reason"] == "InitialNamesAccepted"
    assert not accept_names(mine, taken(), "3")
    assert not establish(mine, "3")


def test_a_definition_whose_webhook_cannot_be_checked_waits():
    mine = crd()
    client = {"url": "https://a.example", "caBundle": "AA=="}
    mine["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": client}}
    accept_names(mine, taken(), "1")
    assert establish(mine, "2")
    found = condition(mine, "Established")
    assert (found["status"], found["reason"]) == ("False", "InvalidCABundle")
    assert not establish(mine, "3"), "nothing is written again"
    assert not accept_names(mine, taken(), "3")
    del client["caBundle"]
    assert establish(mine, "4")
    assert condition(mine, "Established")["reason"] == "InitialNamesAccepted"


@pytest.mark.parametrize(
    ("mine", "reason", "message"),
    [
        (crd("aples"), "ListKindConflict", '"AppleList" is already in use'),
        (crd("pears", "Pear", shortNames=["ap"]), "ShortNamesConflict", '"ap" is already in use'),
        (crd("plums", "Plum", singular="apple"), "SingularConflict", '"apple" is already in use'),
        (crd("figs", "Fig", shortNames=["ap", "apples"]), "ShortNamesConflict",
         '["ap" is already in use, "apples" is already in use]'),
    ],
)  # fmt: skip
def test_conflicts(mine, reason, message):
    assert accept_names(mine, taken(crd(shortNames=["ap"])), "1")
    found = condition(mine, "NamesAccepted")
    assert (found["status"], found["reason"], found["message"]) == ("False", reason, message)
    assert condition(mine, "Established")["reason"] == "NotAccepted"
    assert not establish(mine, "2")
    assert not accept_names(mine, taken(crd(shortNames=["ap"])), "3")


def test_an_established_definition_stays_so_when_a_new_name_conflicts():
    mine = crd()
    accept_names(mine, taken(), "1")
    establish(mine, "1")
    mine["spec"]["names"]["shortNames"] = ["ap"]
    accept_names(mine, taken(crd("pears", "Pear", shortNames=["ap"])), "2")
    assert is_true(mine, "Established")
    assert not is_true(mine, "NamesAccepted")
    assert "shortNames" not in mine["status"]["acceptedNames"]


def test_approval_is_for_protected_groups_only():
    mine = crd(group="example.k8s.io")
    assert set_approval(mine, "1")
    assert condition(mine, "KubernetesAPIApprovalPolicyConformant")["reason"] == "MissingAnnotation"
    assert not set_approval(mine, "2")
    other = crd()
    assert not set_approval(other, "1")
    other["status"]["conditions"] = [{"type": "KubernetesAPIApprovalPolicyConformant", "status": "True"}]
    assert set_approval(other, "2")
    assert other["status"]["conditions"] == []


def test_what_is_leaving_is_not_established():
    mine = crd()
    accept_names(mine, taken(), "1")
    mine["metadata"]["deletionTimestamp"] = "1"
    assert not establish(mine, "2")
