"""Which plug-ins there are, in which order they run, and how a user's own join them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from pilothouse.admission import catalogue
from pilothouse.admission.catalogue import load_catalogue
from pilothouse.admission.configuration import ConfigurationError, load_sections
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.pod_security.configuration import read_configuration as pod_security
from pilothouse.admission.quota.configuration import read_configuration as quota
from pilothouse.admission.webhooks.credentials import CredentialBook

MODULE = """
from pilothouse.admission.plugin import Plugin

class Wanted(Plugin):
    name = "Wanted"
    default_on = True

class OnDemand(Plugin):
    name = "OnDemand"
"""
SECTION: dict[str, Any] = {"imagePolicy": {"kubeConfigFile": ""}}


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_plugins_for_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_plugins_for_test", raising=False)
    return "own_plugins_for_test"


def test_every_module_holds_a_plugin_of_its_name() -> None:
    loaders = load_catalogue().loaders
    assert {name: loader().name for name, loader in loaders.items()} == {name: name for name in loaders}


@pytest.mark.parametrize(
    ("enable", "disable", "present", "absent"),
    [
        ((), (), {"NamespaceLifecycle", "ResourceQuota"}, {"NodeRestriction", "AlwaysDeny"}),
        (("NodeRestriction",), (), {"NodeRestriction", "PodSecurity"}, {"AlwaysDeny"}),
        ((), ("PodSecurity",), {"Priority"}, {"PodSecurity"}),
    ],
)
def test_selection(enable: Any, disable: Any, present: set[str], absent: set[str]) -> None:
    selected = load_catalogue().select(enable, disable)
    assert present <= set(selected)
    assert not absent & set(selected)


def test_own_plugins_run_before_webhooks(own_module: str) -> None:
    names = list(load_catalogue([own_module]).loaders)
    assert names.index("PodResizeValidator") < names.index("Wanted") < names.index("MutatingAdmissionWebhook")


def test_own_plugins_run_by_default_only_if_they_say_so(own_module: str) -> None:
    loaded = load_catalogue([own_module])
    assert "Wanted" in loaded.select((), ())
    assert "OnDemand" not in loaded.select((), ())
    assert "OnDemand" in loaded.select(("OnDemand",), ())


@pytest.mark.parametrize("kind", ["dist-info", "egg-info"])
def test_own_plugins_from_entry_points(own_module: str, tmp_path: Path, kind: str) -> None:
    assert "Wanted" not in load_catalogue().loaders
    described = tmp_path / f"own_plugins-1.0.{kind}"
    described.mkdir()
    (described / ("METADATA" if kind == "dist-info" else "PKG-INFO")).write_text("Name: own-plugins\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[{catalogue.ENTRY_POINTS}]\nwanted = {own_module}:Wanted\n")
    importlib.invalidate_caches()
    assert "Wanted" in load_catalogue().loaders


def test_own_plugins_from_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "plugins.zip"
    with ZipFile(archive, "w") as packed:
        packed.writestr("packed_plugins_for_test.py", MODULE)
        packed.writestr("packed-1.0.dist-info/METADATA", "Name: packed\nVersion: 1.0\n")
        named = f"[{catalogue.ENTRY_POINTS}]\nwanted = packed_plugins_for_test:Wanted\n"
        packed.writestr("packed-1.0.dist-info/entry_points.txt", named)
    monkeypatch.syspath_prepend(str(archive))
    assert "Wanted" in load_catalogue().loaders


def test_a_module_that_cannot_be_imported_is_a_clear_error() -> None:
    with pytest.raises(ConfigurationError, match="--admission-plugin-module: cannot import no_such_module_at_all"):
        load_catalogue(["no_such_module_at_all"])


async def test_plugins_are_made_with_their_configuration(environment: Environment) -> None:
    made: list[Any] = []

    class Configured(Plugin):
        name = "Configured"

        def __init__(self, environment: Environment, configuration: Any = None) -> None:
            super().__init__(environment)
            made.append(configuration)

    loaded = load_catalogue()
    loaded.loaders["Configured"] = lambda: Configured
    loaded.make(["Configured"], environment, {"Configured": {"a": 1}})
    assert made == [{"a": 1}]


def test_sections_inline_and_by_path(tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text("kind: Configuration\nlimits: []\n")
    (tmp_path / "config.yaml").write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
        "- name: PodSecurity\n  configuration:\n    defaults: {enforce: baseline}\n"
        "- name: EventRateLimit\n  path: limits.yaml\n"
    )
    assert load_sections(str(tmp_path / "config.yaml")) == {
        "PodSecurity": {"defaults": {"enforce": "baseline"}},
        "EventRateLimit": {"kind": "Configuration", "limits": []},
    }


@pytest.mark.parametrize(
    "text",
    ["kind: Pod\napiVersion: v1\n", "plugins: []\n", "a: [", "- 1\n"],
)
def test_faulty_configuration_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError):
        load_sections(str(path))


def test_a_missing_configuration_file(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.yaml"
    why = f'unable to read admission control configuration from "{path}" [open {path}: no such file or directory]'
    with pytest.raises(ConfigurationError) as caught:
        load_sections(str(path))
    assert str(caught.value) == why


def test_files_from_before_there_were_sections(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b}\n")
    assert load_sections(str(path))["PodNodeSelector"] == {
        "podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "a=b"}
    }


def test_unknown_fields_and_second_sections(tmp_path: Path) -> None:
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
    path = tmp_path / "config.yaml"
    path.write_text(head + "- {name: A, configuration: {a: 1}}\n- {name: A, configuration: {a: 2}}\n")
    assert load_sections(str(path)) == {"A": {"a": 1}}
    path.write_text(head + "- {name: A, config: {a: 1}}\n")
    with pytest.raises(ConfigurationError, match=r'strict decoding error: unknown field "plugins\[0\].config"'):
        load_sections(str(path))


@pytest.mark.parametrize(
    ("read", "given", "why"),
    [
        (pod_security, {"defaults": {"enforced": "a"}}, 'strict decoding error: unknown field "defaults.enforced"'),
        (pod_security, {"defaults": {"enforce": "a", "warn-version": "1"}},
         "PodSecurity configuration error: [enforce: must be one of privileged, baseline, restricted, warn-version: "
         "must be \"latest\" or \"v1.x\"]"),
        (
            pod_security, {"exemptions": {"runtimeClasses": True}},
            "json: cannot unmarshal bool into Go struct field PodSecurityExemptions.exemptions.runtimeClasses of type "
            "[]string",
        ),
        (
            pod_security, {"defaults": [""]},
            "json: cannot unmarshal array into Go struct field PodSecurityConfiguration.defaults of type "
            "v1.PodSecurityDefaults",
        ),
        (quota, {"limitedResources": [{"resources": "pods"}]},
         'strict decoding error: unknown field "limitedResources[0].resources"'),
        (quota, {"limitedResources": ["pods"]},
         "json: cannot unmarshal string into Go struct field ResourceQuotaConfiguration.limitedResources of type "
         "v1.LimitedResource"),
    ],
)  # fmt: skip
def test_sections_are_decoded_strictly(read: Any, given: Any, why: str) -> None:
    heads = {
        pod_security: ("pod-security.admission.config.k8s.io/v1", "PodSecurityConfiguration"),
        quota: ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    }
    version, kind = heads[read]
    with pytest.raises(ConfigurationError) as caught:
        read({"apiVersion": version, "kind": kind, **given})
    assert str(caught.value) == why


@pytest.mark.parametrize("read", [pod_security, quota, CredentialBook.configured])
def test_sections_that_are_no_objects(read: Any) -> None:
    for odd in ([None], "x", 1):
        with pytest.raises(ConfigurationError, match="couldn't get version/kind"):
            read(odd)
