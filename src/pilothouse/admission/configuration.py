"""The file behind ``--admission-control-config-file``: one section for each plug-in, inline or in a file of its own.

Everything is read once, when the server starts; a fault ends the start with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pilothouse.machinery import yaml_codec

_GROUP: Final = "apiserver.config.k8s.io"
_VERSIONS: Final = ("v1", "v1alpha1")


class ConfigurationError(ValueError):
    """What is wrong with a configuration file."""


def require_kind(raw: Any, group: str, versions: Sequence[str], kind: str) -> None:
    """Refuse anything but this kind."""
    if not isinstance(raw, dict):
        raise ConfigurationError(f"couldn't get version/kind; json parse error: expected a {kind} object")
    if not raw.get("kind"):
        raise ConfigurationError(f"Object 'Kind' is missing in '{yaml_codec.dump(raw).strip()}'")
    known = {f"{group}/{version}" if group else version for version in versions}
    if raw["kind"] != kind or raw.get("apiVersion") not in known:
        given = raw.get("apiVersion", "")
        raise ConfigurationError(f'no kind "{raw["kind"]}" is registered for version "{given}"')


def load_sections(path: str) -> dict[str, Any]:
    """The decoded section of every plug-in that has one."""
    if not path:
        return {}
    whole = _load(Path(path), "unable to read admission control configuration from")
    require_kind(whole, _GROUP, _VERSIONS, "AdmissionConfiguration")
    folder = Path(path).parent
    sections: dict[str, Any] = {}
    for item in whole.get("plugins") or ():
        name = item.get("name", "")
        if item.get("configuration") is not None:
            sections[name] = item["configuration"]
        elif item.get("path"):
            sections[name] = _load(folder / item["path"], "unable to read configuration of plug-in from")
    return sections


def _load(path: Path, failure: str) -> Any:
    try:
        return yaml_codec.load(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f'{failure} "{path}" [{error.strerror}]') from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from None
