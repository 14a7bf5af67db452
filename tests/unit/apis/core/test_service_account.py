"""Service accounts."""

from __future__ import annotations

from typing import Any


def test_a_service_account_keeps_names_of_secrets_only(kind: Any) -> None:
    accounts = kind("v1", "serviceaccounts")
    made = accounts.create({"secrets": [{"name": "x", "namespace": "other", "uid": "1"}, {"kind": "Secret"}]})
    assert made["secrets"] == [{"name": "x"}, {}]
    annotation = {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    changed = accounts.update(made, {"metadata": annotation})
    assert accounts.warnings == [
        "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; "
        "prefer separate namespaces to isolate access to mounted secrets"
    ]
    accounts.update(changed, {"metadata": {"labels": {"a": "b"}}})
    assert accounts.warnings == []
