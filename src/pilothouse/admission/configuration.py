"""The file behind ``--admission-control-config-file``: one section for each plug-in, inline or in a file of its own.

Everything is read once, when the server starts; an error ends the start with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pilothouse.machinery import large_json, yaml_codec
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.shapes import Struct, unknown_fields, without_nulls

_GROUP: Final = "apiserver.config.k8s.io"
_VERSIONS: Final = ("v1", "v1alpha1")
# Once these plug-ins read the whole file, and such files are still taken.
_UNVERSIONED: Final = {"imagePolicy": "ImagePolicyWebhook", "podNodeSelectorPluginConfig": "PodNodeSelector"}


class ConfigurationError(ValueError):
    """What is wrong with a configuration file."""


class InitializationError(ConfigurationError):
    """What is wrong with the configuration of a plug-in, as it shows when that is about to be used."""


def require_kind(raw: Any, group: str, versions: Sequence[str], kind: str) -> None:
    """Refuse anything but this kind."""
    if not isinstance(raw, dict):
        raise ConfigurationError(f"couldn't get version/kind; json parse error: expected a {kind} object")
    for field, shown in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not raw.get(field):
            raise ConfigurationError(f"Object '{shown}' is missing in '{large_json.dumps(raw).decode()}'")
    known = {f"{group}/{version}" if group else version for version in versions}
    if raw["kind"] != kind or raw.get("apiVersion") not in known:
        given = raw.get("apiVersion", "")
        raise ConfigurationError(f'no kind "{raw["kind"]}" is registered for version "{given}"')


def decoded(raw: dict[str, Any], shape: Struct, *, strict: bool = True) -> dict[str, Any]:
    """The section without nulls; refuses values of other types than its kind has and, if strict, fields it has not."""
    package = str(raw.get("apiVersion") or "").rpartition("/")[2]
    try:
        unknown = unknown_fields(raw, shape, package)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    if strict and unknown:
        listed = ", ".join(f"unknown field {quote(each)}" for each in unknown)
        raise ConfigurationError(f"strict decoding error: {listed}")
    settled: dict[str, Any] = without_nulls(raw, shape)
    return settled


def load_sections(path: str) -> dict[str, Any]:
    """The decoded section of every plug-in that has one."""
    if not path:
        return {}
    whole = _load(Path(path), "unable to read admission control configuration from")
    if isinstance(whole, dict) and not whole.get("kind") and any(key in whole for key in _UNVERSIONED):
        return dict.fromkeys(_UNVERSIONED.values(), whole)
    require_kind(whole, _GROUP, _VERSIONS, "AdmissionConfiguration")
    _refuse_unknown(whole)
    folder = Path(path).parent
    sections: dict[str, Any] = {}
    for item in _plugins(whole):
        name = item.get("name", "")
        if name in sections:
            continue
        if item.get("configuration") is not None:
            sections[name] = item["configuration"]
        elif item.get("path"):
            sections[name] = _load(folder / item["path"], "unable to read configuration of plug-in from")
    return sections


def _refuse_unknown(whole: dict[str, Any]) -> None:
    unknown = [key for key in whole if key not in ("kind", "apiVersion", "plugins")]
    for position, item in enumerate(_plugins(whole)):
        unknown += [f"plugins[{position}].{key}" for key in item if key not in ("name", "path", "configuration")]
    if unknown:
        listed = ", ".join(f"unknown field {quote(each)}" for each in unknown)
        raise ConfigurationError(f"strict decoding error: {listed}")


def _plugins(whole: dict[str, Any]) -> list[dict[str, Any]]:
    given = whole.get("plugins")
    where, of = "Go struct field AdmissionConfiguration.plugins of type", "v1.AdmissionPluginConfiguration"
    if not isinstance(given, list | None):
        raise ConfigurationError(f"json: cannot unmarshal {json_type(given)} into {where} []{of}")
    for item in given or ():
        if not isinstance(item, dict | None):
            raise ConfigurationError(f"json: cannot unmarshal {json_type(item)} into {where} {of}")
    return [item or {} for item in given or ()]


def _load(path: Path, failure: str) -> Any:
    try:
        return yaml_codec.load(path.read_bytes())
    except OSError as error:
        why = f"open {path}: {(error.strerror or '').lower()}"
        raise ConfigurationError(f"{failure} {quote(str(path))} [{why}]") from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from None
