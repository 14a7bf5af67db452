"""Secrets: what each type must hold, and string data folded into data."""

from __future__ import annotations

import base64
from typing import Any, Final

import orjson

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import check_unchanged, refusals
from pilothouse.apis.core.config_map import FROZEN, SIZE_LIMIT, decoded_size
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.machinery import base64_text, large_json, names
from pilothouse.machinery.field_errors import FieldError, Named, Path, forbidden, invalid, required, too_long
from pilothouse.machinery.go_json import explain, json_type
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

OPAQUE: Final = "Opaque"
TLS: Final = "kubernetes.io/tls"
SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_DOCKER_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_DATA: Final = Path("data")


class SecretStrategy(Strategy):
    """The type never changes; an update that leaves it out keeps the stored one."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    field_labels = frozenset({"type"})
    field_sources = field_labels
    columns = (
        NAME,
        Column("Type", "string", lambda obj: obj.get("type", ""), description=Doc("core.v1.Secret", "type")),
        Column("Data", "string", lambda obj: len(obj.get("data") or ()), description=Doc("core.v1.Secret", "data")),
        AGE,
    )

    def default(self, obj: Object) -> None:
        texts = obj.pop("stringData", None)
        if texts:
            folded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
            obj["data"] = {**(obj.get("data") or {}), **folded}
        if not obj.get("type"):
            obj["type"] = OPAQUE

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        data = obj.get("data") or {}
        size = 0
        for key, value in data.items():
            errs += refusals(_DATA.key(key), key, names.check_config_map_key(key))
            size += decoded_size(value or "")
        if size > SIZE_LIMIT:
            errs.append(too_long(_DATA, "", SIZE_LIMIT))
        return errs + _check_contents(obj, data)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = check_unchanged(Path("type"), Named(obj.get("type", "")), old.get("type", ""))
        if old.get("immutable"):
            if not obj.get("immutable"):
                errs.append(forbidden(Path("immutable"), FROZEN))
            if as_given(obj, "data") != old.get("data"):
                errs.append(forbidden(_DATA, FROZEN))
        return errs + self.validate(ctx, obj)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        if obj.get("type") != TLS:
            return []
        from pilothouse.apis.core.secret.warnings import explain_key_pair

        data = obj.get("data") or {}
        why = explain_key_pair(_bytes(data.get("tls.crt")), _bytes(data.get("tls.key")))
        return [why] if why else []

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)

    def fields(self, obj: Object) -> dict[str, str]:
        return {"type": obj.get("type", "")}


def _check_contents(obj: Object, data: dict[str, Any]) -> list[FieldError]:
    """What the secret's type demands to be there."""
    match obj.get("type"):
        case "kubernetes.io/service-account-token":
            if not (obj["metadata"].get("annotations") or {}).get(SERVICE_ACCOUNT_NAME):
                return [required(Path("metadata", "annotations").key(SERVICE_ACCOUNT_NAME), "")]
        case ("kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson") as type_:
            return _check_docker(data, _DOCKER_KEYS[type_])
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                return [required(_DATA.key(key), "") for key in ("username", "password")]
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                return [required(_DATA.key("ssh-privatekey"), "")]
        case "kubernetes.io/tls":
            return [required(_DATA.key(key), "") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _check_docker(data: dict[str, Any], key: str) -> list[FieldError]:
    if key not in data:
        return [required(_DATA.key(key), "")]
    text = _bytes(data[key])
    try:
        value = large_json.loads(text)
    except orjson.JSONDecodeError:
        why = explain(text)
    else:
        if value is None or isinstance(value, dict):
            return []
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
    return [invalid(_DATA.key(key), "<secret contents redacted>", why)]


def _bytes(value: str | None) -> bytes:
    return base64_text.decode(value or "")
