from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.cli.convert import run

DEPLOYMENT = """\
# The web frontend.
apiVersion: extensions/v1beta1
kind: Deployment
metadata:
  name: web  # its name
spec:
  replicas: 3  # three of them
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      # the main one
      - name: c
        image: nginx  # old
"""
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1beta1   # beta
kind: Role
metadata: {name: r}
rules:
- apiGroups: [""]   # core
  resources: [pods]
  verbs: [get]
"""


def converted(tmp_path: Path, text: str, *words: str) -> str:
    (tmp_path / "a.yaml").write_text(text)
    assert run(["-f", str(tmp_path), "-o", str(tmp_path / "out"), *words]) == 0
    return (tmp_path / "out" / "a.yaml").read_text()


def test_what_the_old_version_filled_in_is_written_out(tmp_path: Path) -> None:
    text = converted(tmp_path, DEPLOYMENT)
    assert "apiVersion: apps/v1\n" in text
    assert "  selector:\n    matchLabels:\n      app: web\n" in text
    assert "revisionHistoryLimit: 2147483647" in text
    assert "status" not in text


def test_comments_stay_with_their_fields(tmp_path: Path) -> None:
    text = converted(tmp_path, DEPLOYMENT)
    assert text.startswith("# The web frontend.\napiVersion:")
    for line in ("  name: web  # its name", "  replicas: 3  # three of them", "      # the main one\n      - name: c"):
        assert line in text


def test_where_only_the_version_changes_the_rest_stays_as_it_was_written(tmp_path: Path) -> None:
    assert converted(tmp_path, ROLE) == ROLE.replace("v1beta1", "v1")


def test_several_documents_and_another_version(tmp_path: Path) -> None:
    text = converted(tmp_path, f"{DEPLOYMENT}---\n{ROLE}", "--to", "apps/v1beta2")
    assert "apiVersion: apps/v1beta2\n" in text
    assert text.endswith(f"---\n{ROLE}")


def test_what_has_no_successor_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "apiVersion: settings.k8s.io/v1alpha1\nkind: PodPreset\nmetadata: {name: p}\n"
    assert converted(tmp_path, text) == text
    assert "PodPreset p has no successor" in capsys.readouterr().err


def test_what_cannot_be_read_fails_and_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: [")
    assert run(["-f", str(file), "--in-place"]) == 1
    assert file.read_text() == "a: ["
    file.write_text("apiVersion: apps/v1beta1\nkind: Deployment\nspec: 3\n")
    assert run(["-f", str(file), "--in-place"]) == 1
    assert "cannot be converted" in capsys.readouterr().err
