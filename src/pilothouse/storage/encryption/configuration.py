"""``--encryption-provider-config``: which resources are encrypted, by what, in which order.

Reading is strict and every error is named in kube-apiserver's words; secrets are never part of a message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from pilothouse.machinery.field_errors import FieldError, Path, aggregate, invalid, required
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.shapes import DURATION, Struct, unknown_fields, without_nulls
from pilothouse.machinery.times import TimeError, parse_duration
from pilothouse.machinery.yaml_codec import load

PROVIDERS: Final = ("aesgcm", "aescbc", "secretbox", "identity", "kms")
_AES_SIZES: Final = (16, 24, 32)
_SECRETBOX_SIZES: Final = (32,)
_INTERNAL: Final = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
_NO_PROVIDER: Final = (
    "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
)
_TWO_PROVIDERS: Final = (
    "more than one provider specified in a single element, should split into different list elements"
)
_OVERLAP: Final = (
    "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be "
    "masked"
)


@dataclass(frozen=True, slots=True)
class Key:
    """A named key."""

    name: str
    secret: bytes


@dataclass(frozen=True, slots=True)
class KMS:
    """A key management service."""

    name: str
    endpoint: str
    timeout: float


@dataclass(frozen=True, slots=True)
class Provider:
    """One way to encrypt."""

    type: str
    keys: tuple[Key, ...] = ()
    kms: KMS | None = None


_KEYS: Final = {"keys": [Struct("Key", {"name": str, "secret": str})]}
_AES: Final = Struct("AESConfiguration", _KEYS)
_KMS: Final = {"apiVersion": str, "name": str, "cachesize": int, "endpoint": str, "timeout": DURATION}
_PROVIDER: Final = {
    "aesgcm": _AES,
    "aescbc": _AES,
    "secretbox": Struct("SecretboxConfiguration", _KEYS),
    "identity": Struct("IdentityConfiguration", {"": str}),
    "kms": Struct("KMSConfiguration", _KMS),
}
_RESOURCES: Final = {"resources": [str], "providers": [Struct("ProviderConfiguration", _PROVIDER)]}
_SHAPE: Final = Struct(
    "EncryptionConfiguration",
    {"apiVersion": str, "kind": str, "resources": [Struct("ResourceConfiguration", _RESOURCES)]},
)
_OLD_KMS: Final = (
    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  "
    "Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
)
GroupAndResource = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """What some resources are encrypted by; the first provider writes."""

    resources: tuple[GroupAndResource, ...]
    providers: tuple[Provider, ...]


def parse_configuration(data: bytes, path: str = "") -> tuple[Rule, ...]:
    """Read and check the content of a file. Raises ``ValueError``."""
    try:
        entries = _entries(data)
    except ValueError as error:
        what = f"error decoding encryption provider configuration file {quote(path)}: " if path else ""
        raise ValueError(f"{what}{error}") from None
    errs = _errors(entries)
    if errs:
        raise ValueError(aggregate(str(error) for error in errs))
    rules = tuple(
        Rule(tuple(parse_resource(name) for name in entry["resources"]), tuple(map(_provider, entry["providers"])))
        for entry in entries
    )
    _refuse_masked(rules)
    return rules


def _entries(data: bytes) -> Sequence[Any]:
    document = load(data, strict=True) if data else None
    if not isinstance(document, dict):
        raise ValueError("the encryption provider configuration is empty or not an object")
    if document.get("kind") not in ("EncryptionConfiguration", "EncryptionConfig"):
        raise ValueError(f"got unexpected config type: {document.get('kind')}")
    if document.get("apiVersion") not in ("apiserver.config.k8s.io/v1", "v1"):
        raise ValueError(f"no kind EncryptionConfiguration is registered for version {document.get('apiVersion')}")
    unknown = unknown_fields(document, _SHAPE)
    if unknown:
        raise ValueError(f"strict decoding error: {', '.join(f'unknown field {quote(field)}' for field in unknown)}")
    entries: Sequence[Any] = without_nulls(document, _SHAPE).get("resources") or ()
    return entries


def parse_resource(text: str) -> GroupAndResource:
    """Group and resource of ``deployments.apps``."""
    resource, _, group = text.partition(".")
    return group, resource


def _provider(entry: Mapping[str, Any]) -> Provider:
    (kind,) = (name for name in PROVIDERS if name in entry)
    settings = entry[kind] or {}
    if kind == "identity":
        return Provider(kind)
    if kind == "kms":
        if (settings.get("apiVersion") or "v1") == "v1":
            raise ValueError(_OLD_KMS)
        timeout = parse_duration(str(settings.get("timeout") or "3s")) / 1_000_000_000
        return Provider(kind, kms=KMS(settings["name"], settings["endpoint"], timeout))
    return Provider(kind, tuple(Key(key["name"], base64.b64decode(key["secret"])) for key in settings["keys"]))


def _refuse_masked(rules: Sequence[Rule]) -> None:
    """A rule for a resource that an earlier wildcard already covers would never be asked."""
    seen: set[GroupAndResource] = set()
    for rule in rules:
        for group, resource in rule.resources:
            for wildcard in ((group, "*"), ("*", "*")):
                if wildcard in seen and (group, resource) != wildcard:
                    raise ValueError(
                        f'resource "{_show(group, resource)}" is masked by earlier rule "{_show(*wildcard)}"'
                    )
        seen.update(rule.resources)


def _show(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group or resource == "*" else resource


def _errors(entries: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    root = Path("resources")
    if not entries:
        return [required(root, f"at least one {root} is required")]
    errs: list[FieldError] = []
    names: set[str] = set()
    for number, entry in enumerate(entries):
        resources, providers = root.index(number).child("resources"), root.index(number).child("providers")
        listed = entry.get("resources") or []
        if not listed:
            errs.append(required(resources, f"at least one {resources} is required"))
        errs += _overlap_errors(listed, resources) + _name_errors(listed, resources)
        if not entry.get("providers"):
            errs.append(required(providers, f"at least one {providers} is required"))
        for position, provider in enumerate(entry.get("providers") or ()):
            errs += _provider_errors(provider, providers.index(position), names)
    return errs


def _overlap_errors(listed: Sequence[str], path: Path) -> list[FieldError]:
    parsed = [parse_resource(name) for name in listed]
    errs: list[FieldError] = []
    if len(set(parsed)) < len(parsed):
        errs.append(invalid(path, list(listed), "the same resource cannot be specified multiple times"))
    different = set(parsed)
    groups = [group for group, _ in different]
    masked = ("*", "*") in different and len(different) > 1
    if masked or any(resource == "*" and groups.count(group) > 1 for group, resource in different):
        errs.append(invalid(path, list(listed), _OVERLAP))
    return errs


def _name_errors(listed: Sequence[str], path: Path) -> list[FieldError]:
    errs: list[FieldError] = []
    for number, name in enumerate(listed):
        group, resource = parse_resource(name)
        if name != name.lower():
            detail = "resource name should not contain capital letters"
        elif name == "*":
            detail = "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
        elif name in _INTERNAL:
            detail = "resources which do not have REST API/s cannot be encrypted"
        elif group == "events.k8s.io":
            detail = (
                "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in "
                "the config file"
            )
        elif group == "extensions":
            detail = "'extensions' group has been removed and cannot be used for encryption"
        elif group == "*" and resource != "*":
            detail = "encrypting the same resource across groups is not supported"
        else:
            continue
        errs.append(invalid(path.index(number), name, detail))
    return errs


def _provider_errors(provider: Mapping[str, Any], path: Path, names: set[str]) -> list[FieldError]:
    found = [name for name in PROVIDERS if name in provider and provider[name] is not None]
    if len(found) != 1:
        # Only the names are shown: there are keys in it.
        return [invalid(path, sorted(provider), _NO_PROVIDER if not found else _TWO_PROVIDERS)]
    kind = found[0]
    settings = provider[kind]
    if kind == "identity":
        return []
    if not isinstance(settings, dict):
        raise ValueError(f"{path.child(kind)} must be an object")
    if kind == "kms":
        return _kms_errors(settings, path.child("kms"), names)
    sizes = _SECRETBOX_SIZES if kind == "secretbox" else _AES_SIZES
    keys = settings.get("keys") or []
    where = path.child(kind, "keys")
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise ValueError(f"{where} must be a list of objects")
    if not keys:
        return [required(where, "at least one keys is required")]
    return [error for number, key in enumerate(keys) for error in _key_errors(key, where.index(number), sizes)]


def _key_errors(key: Mapping[str, Any], path: Path, sizes: Sequence[int]) -> list[FieldError]:
    errs: list[FieldError] = []
    name, secret = key.get("name"), key.get("secret")
    if not isinstance(name, str) or not name:
        errs.append(required(path.child("name"), "name is a mandatory field for a key"))
    if not isinstance(secret, str) or not secret:
        return [*errs, required(path.child("secret"), "secret is a mandatory field for a key")]
    try:
        size = len(base64.b64decode(secret, validate=True))
    except (binascii.Error, ValueError):
        return [*errs, invalid(path.child("secret"), "REDACTED", "secrets must be base64 encoded")]
    if size not in sizes:
        wanted = " ".join(str(each) for each in sizes)
        detail = f"secret is not of the expected length, got {size}, expected one of [{wanted}]"
        errs.append(invalid(path.child("secret"), "REDACTED", detail))
    return errs


def _kms_errors(settings: Mapping[str, Any], path: Path, names: set[str]) -> list[FieldError]:
    errs: list[FieldError] = []
    name, version = str(settings.get("name") or ""), settings.get("apiVersion") or "v1"
    if not name:
        errs.append(required(path.child("name"), "name is a mandatory field for a provider"))
    if version != "v1" and ":" in name:
        detail = f"invalid KMS provider name {name}, must not contain ':'"
        errs.append(invalid(path.child("name"), name, detail))
    if version != "v1" and name in names:
        detail = f"duplicate KMS provider name {name}, names must be unique"
        errs.append(invalid(path.child("name"), name, detail))
    names.add(name)
    try:
        if parse_duration(str(settings.get("timeout") or "3s")) <= 0:
            errs.append(invalid(path.child("timeout"), settings["timeout"], "timeout should be a positive value"))
    except TimeError as error:
        errs.append(invalid(path.child("timeout"), settings.get("timeout"), str(error)))
    endpoint = str(settings.get("endpoint") or "")
    if not endpoint:
        errs.append(invalid(path.child("endpoint"), "", "endpoint is a mandatory field for a kms"))
    elif urlsplit(endpoint).scheme != "unix":
        detail = f'unsupported scheme "{urlsplit(endpoint).scheme}" for KMS provider, only unix is supported'
        errs.append(invalid(path.child("endpoint"), endpoint, detail))
    size = settings.get("cachesize")
    if version != "v1" and size is not None:
        errs.append(invalid(path.child("cachesize"), size, "cachesize is not supported in v2"))
    elif size == 0:
        detail = "cachesize should be a positive value, or negative to disable"
        errs.append(invalid(path.child("cachesize"), size, detail))
    if version not in ("v1", "v2"):
        detail = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"
        errs.append(invalid(path.child("apiVersion"), version, detail))
    return errs
