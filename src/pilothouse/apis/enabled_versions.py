"""Which group versions are served, with which of their resources."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pilothouse.apis.emulation import PRESENT, Emulation, introduced, version_text
from pilothouse.apis.gated import is_served
from pilothouse.apis.gates import default_gates
from pilothouse.apis.resources import Resource, Version, table
from pilothouse.machinery.gvk import GroupResource, GroupVersion
from pilothouse.machinery.kube_versions import preferred_first

_AGGREGATION: Final = "apiregistration.k8s.io"
_LEGACY: Final = "api/legacy"
_ON: Final = ("", "true")


def enabled_versions(
    runtime_config: dict[str, str], gates: frozenset[str] | None = None, emulation: Emulation = PRESENT
) -> list[Version]:
    """The versions to serve: those on by default, as changed by ``--runtime-config``.

    Keys are ``api/all``, ``api/ga``, ``api/beta``, ``api/alpha``, or a group version; the more specific one wins.
    Resources that are served no more take ``api/legacy``, their group version if nothing else is in it, or their full
    name, unless the emulated version had them still. Resources of features that are off, or newer than the emulated
    version, are left out, and versions in which none is left.
    """
    gates = default_gates() if gates is None else gates
    if emulation.is_older or any(value in _ON and _is_legacy(key) for key, value in runtime_config.items()):
        from pilothouse.apis.legacy import older

        older.load()
    served = [_chosen(version, gates, runtime_config, emulation) for version in table().values()]
    if emulation.is_older:
        served = _without_newer(served, runtime_config, emulation)
    return [version for version in served if version.resources]


def _without_newer(versions: list[Version], runtime_config: dict[str, str], emulation: Emulation) -> list[Version]:
    """The versions without resources that came later, from the least preferred version of each group upward.

    A later version of a resource that is served is kept where the emulation is to be forward compatible; versions that
    are alpha do not count for that.
    """
    kept: dict[GroupVersion, Version] = {}
    present: set[GroupResource] = set()
    for version in sorted(versions, key=lambda each: preferred_first(each.group_version.version), reverse=True):
        rows = [
            row
            for row in version.resources
            if not _is_too_new(row, emulation)
            or (emulation.serves_newer and row.group_resource in present)
            or (emulation.switches_newer and _is_named(row, runtime_config))
        ]
        if "alpha" not in version.group_version.version:
            present.update(row.group_resource for row in rows)
        kept[version.group_version] = replace(version, resources=rows)
    return [kept[version.group_version] for version in versions]


def too_new(runtime_config: dict[str, str], emulation: Emulation) -> list[str]:
    """What is wrong with switching on by name what came after the emulated version."""
    errors = []
    for key, value in runtime_config.items():
        group, _, rest = key.partition("/")
        name, _, resource = rest.partition("/")
        version = table().get(GroupVersion(group, name))
        if version is None or value not in _ON:
            continue
        new = {row.name: row for row in version.resources if _is_too_new(row, emulation)}
        advice = "Consider setting --runtime-config-emulation-forward-compatible=true"
        if resource in new:
            since = version_text(introduced()[new[resource].gvk])
            errors.append(
                f"cannot enable resource {group}/{name}, Resource={resource} in runtime-config because it is "
                f"introduced at {since} after the current version {emulation.text()}. {advice}"
            )
        elif not resource and len(new) == len(version.resources):
            errors.append(
                f"cannot enable version {key} in runtime-config because all the resources have been introduced after "
                f"the current version {emulation.text()}. {advice}"
            )
    return errors[:1]


def _is_too_new(row: Resource, emulation: Emulation) -> bool:
    since = introduced().get(row.gvk)
    return since is not None and since > emulation.version


def _is_named(row: Resource, runtime_config: dict[str, str]) -> bool:
    keys = (f"{row.group_version}/{row.name}", str(row.group_version))
    return any(runtime_config.get(key) in _ON for key in keys)


def _is_legacy(key: str) -> bool:
    """Whether a key can only mean what is served no more."""
    group, _, rest = key.partition("/")
    if group == "api":
        return key == _LEGACY
    name, _, resource = rest.partition("/")
    version = table().get(GroupVersion(group, name))
    return version is None or version.legacy or (bool(resource) and resource not in {r.name for r in version.resources})


def _chosen(version: Version, gates: frozenset[str], runtime_config: dict[str, str], emulation: Emulation) -> Version:
    """The version with those of its resources that are served."""
    on = _is_enabled(version.group_version, version.is_default, runtime_config)
    rows = [
        row
        for row in version.resources
        if is_served(row.group, row.name, gates)
        and ((on and not _is_removed(row, emulation)) or _is_revived(row, version, runtime_config))
    ]
    return version if len(rows) == len(version.resources) else replace(version, resources=rows)


def _is_removed(row: Resource, emulation: Emulation) -> bool:
    """Whether the emulated version does not have a resource any more."""
    return row.legacy and (row.end is None or row.end.removed <= emulation.version[1])


def _is_revived(row: Resource, version: Version, runtime_config: dict[str, str]) -> bool:
    """Whether a resource that the release has no more is switched on nevertheless."""
    if not row.legacy:
        return False
    keys = (f"{row.group_version}/{row.name}", str(row.group_version) if version.legacy else "", _LEGACY)
    return next((runtime_config[key] in _ON for key in keys if key in runtime_config), False)


def _is_enabled(gv: GroupVersion, default: bool, runtime_config: dict[str, str]) -> bool:
    if gv.group == _AGGREGATION:
        return True
    stage = "alpha" if "alpha" in gv.version else "beta" if "beta" in gv.version else "ga"
    for key in (str(gv), f"api/{stage}", "api/all"):
        value = runtime_config.get(key)
        if value is not None:
            return value in _ON
    return default
