"""Validation of CustomResourceDefinitions, in kube-apiserver's order and words."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from pilothouse.apis.admissionregistration.endpoints import validate_service, validate_url
from pilothouse.apis.apiextensions.custom_resource_definition import definitions
from pilothouse.apis.apiextensions.custom_resource_definition.approval import approval_of, is_protected
from pilothouse.apis.apiextensions.custom_resource_definition.columns_validation import (
    validate_column,
    validate_selectable,
    validate_subresources,
)
from pilothouse.apis.apiextensions.custom_resource_definition.internal_form import InternalSpec
from pilothouse.apis.apiextensions.custom_resource_definition.schema_validation import (
    TYPES,
    SchemaOptions,
    map_key_errors,
    set_item_errors,
    validate_schema,
)
from pilothouse.apis.apiextensions.custom_resource_definition.structural import structural_errors, unsupported
from pilothouse.apis.apiextensions.schema.traversal import depth_of, subschemas
from pilothouse.apis.metadata import validate_metadata
from pilothouse.apis.object_names import NameValidator, name_is_dns_subdomain
from pilothouse.apis.validation import one_of_required, unchanged
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Named, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_STORED: Final = Path("status", "storedVersions")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_DEPTH_LIMIT: Final = 128
"""Schemas are compiled by recursion. kube-apiserver has no such limit; no real schema comes near it."""


def validate_definition(crd: Object, *, structured: bool = True) -> list[FieldError]:
    """Errors of a new definition; one that need not be ``structured`` may do without schemas, but has no defaults."""
    return _validate(crd, None, structured)


def validate_definition_update(crd: Object, old: Object, *, structured: bool = True) -> list[FieldError]:
    """Errors of a changed one; what was wrong before may stay wrong."""
    return _validate(crd, old, structured)


def _validate(crd: Object, old: Object | None, structured: bool) -> list[FieldError]:
    errs: list[FieldError] = []
    if old is None:
        errs += validate_metadata(crd["metadata"], namespaced=False, validate_name=_name_check(crd))
    if any(depth_of(schema) > _DEPTH_LIMIT for _, schema in _schemas(crd["spec"])):
        errs.append(forbidden(_SPEC.child("versions"), f"schemas may not be nested deeper than {_DEPTH_LIMIT} levels"))
        return errs
    _validate_spec(crd, old, structured, errs)
    if old is not None:
        _validate_unchanged(crd, old, errs)
    validate_names(crd["status"].get("acceptedNames") or {}, Path("status", "acceptedNames"), errs)
    _validate_stored(crd, errs)
    _validate_approval(crd, old, errs)
    if structured:
        _validate_preserving(crd, old, errs)
    return errs


def validate_status_update(crd: Object, old: Object) -> list[FieldError]:
    """Errors of a write through the status."""
    errs: list[FieldError] = []
    validate_names(crd["status"].get("acceptedNames") or {}, Path("status", "acceptedNames"), errs)
    return errs


def _name_check(crd: Object) -> NameValidator:
    wanted = f"{crd['spec']['names'].get('plural', '')}.{crd['spec'].get('group', '')}"

    def check(name: str, prefix: bool) -> list[str]:
        messages = name_is_dns_subdomain(name, prefix)
        return messages if name == wanted else [*messages, 'must be spec.names.plural+"."+spec.group']

    return check


def _validate_spec(crd: Object, old: Object | None, structured: bool, errs: list[FieldError]) -> None:
    spec = crd["spec"]
    group = spec.get("group", "")
    messages = names.check_dns1123_subdomain(group)
    if not group:
        errs.append(required(_SPEC.child("group")))
    elif messages:
        errs.append(invalid(_SPEC.child("group"), group, ",".join(messages)))
    elif "." not in group:
        errs.append(invalid(_SPEC.child("group"), group, "should be a domain with at least one dot"))
    one_of_required(spec.get("scope", ""), ("Cluster", "Namespaced"), _SPEC, "scope", errs, plain=True)
    inner = InternalSpec(spec)
    _require_schemas(inner, old, structured, errs)
    preserving = bool(spec.get("preserveUnknownFields"))
    if (
        preserving
        and structured
        and any(_has(schema, lambda s: s.get("default") is not None) for _, schema in _schemas(spec))
    ):
        why = "must be false in order to use defaults in the schema"
        errs.append(invalid(_SPEC.child("preserveUnknownFields"), True, why))
    options, before = _options(spec, old), _Before(old)
    if not structured:
        options = replace(options, structural=not preserving, valid_types=False, allow_defaults=False)
    for position, version in enumerate(inner.versions):
        _validate_version(inner, version, position, options, before, errs)
    _validate_version_set(inner, errs)
    _validate_top(inner, options, before, errs)
    conversion = spec.get("conversion")
    if conversion is not None:
        strategy = conversion.get("strategy", "")
        if strategy != "None" and preserving:
            why = "must be None if spec.preserveUnknownFields is true"
            errs.append(invalid(_SPEC.child("conversion", "strategy"), strategy, why))
        _validate_conversion(conversion, old, errs)


def _schemas(spec: Object) -> Iterator[tuple[str, Object]]:
    for version in spec.get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            yield version.get("name", ""), schema


def _has(schema: Object, test: Callable[[Object], bool]) -> bool:
    """Whether a test holds anywhere in a schema."""
    return any(map(test, subschemas(schema)))


def _require_schemas(inner: InternalSpec, old: Object | None, structured: bool, errs: list[FieldError]) -> None:
    if (inner.shared.get("validation") or {}).get("openAPIV3Schema") is not None:
        return
    needed = structured and (
        old is None
        or all((each.get("schema") or {}).get("openAPIV3Schema") is not None for each in definitions.versions(old))
    )
    for position, version in enumerate(inner.versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is not None:
            continue
        where = _SPEC.child("versions").index(position).child("schema", "openAPIV3Schema")
        if needed:
            errs.append(required(where))
        elif not inner.spec.get("preserveUnknownFields") and version.get("served"):
            errs.append(required(where, "because otherwise all fields are pruned"))


def _options(spec: Object, old: Object | None) -> SchemaOptions:
    if old is None:
        return SchemaOptions()
    before = [schema for _, schema in _schemas(old["spec"])]
    extended = spec.get("preserveUnknownFields") is not True
    valid_types = atomic_sets = map_keys = True
    rules: set[str] = set()
    for each in (each for schema in before for each in subschemas(schema)):
        valid_types = valid_types and (not each.get("type") or each["type"] in TYPES)
        if "x-kubernetes-list-type" in each:
            atomic_sets = atomic_sets and not set_item_errors(each)
            map_keys = map_keys and not map_key_errors(each)
        rules.update(rule.get("rule", "") for rule in each.get("x-kubernetes-validations") or ())
    return SchemaOptions(
        structural=extended or not any(unsupported(each) or structural_errors(each, Path()) for each in before),
        valid_types=valid_types,
        atomic_sets=atomic_sets,
        map_keys=map_keys,
        old_rules=frozenset(rules),
    )


def _validate_version(
    inner: InternalSpec,
    version: Object,
    position: int,
    options: SchemaOptions,
    before: _Before,
    errs: list[FieldError],
) -> None:
    path = _SPEC.child("versions").index(position)
    name = version.get("name", "")
    messages = names.check_dns1035_label(name)
    if messages:
        errs.append(invalid(path.child("name"), name, ",".join(messages)))
    warning = version.get("deprecationWarning")
    errs += (
        invalid(path.child("deprecationWarning"), Named(warning), why)
        for why in _warning_errors(bool(version.get("deprecated")), warning)
    )
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None:
        kept = before.keeping(options, name, schema)
        errs += validate_schema(schema, path.child("schema"), kept, has_status=inner.has_status(version))
    validate_subresources(version.get("subresources"), path.child("subresources"), errs)
    for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
        validate_column(column, path.child("additionalPrinterColumns").index(at), errs)
    fields = version.get("selectableFields")
    if fields:
        if schema is None:
            why = "may only be set when `version.schema.openAPIV3Schema` is not included"
            errs.append(invalid(path.child("selectableFields"), "", why))
        else:
            allowed = before.fields.get(name) == fields
            validate_selectable(fields, schema, path.child("selectableFields"), errs, allow_many=allowed)


class _Before:
    """What the versions of a definition were like before a change; nothing for a new one."""

    def __init__(self, old: Object | None) -> None:
        spec: Object = {} if old is None else old["spec"]
        self.shared_fields: Any = InternalSpec(spec).shared.get("selectableFields") if old is not None else None
        self.fields = {version["name"]: version.get("selectableFields") for version in spec.get("versions") or ()}
        self._schemas = dict(_schemas(spec))

    def keeping(self, options: SchemaOptions, name: str, schema: Object) -> SchemaOptions:
        """A version whose schema stays as it was is not refused for rules that have become too costly since."""
        return replace(options, suppress_rule_cost=True) if self._schemas.get(name) == schema else options


def _warning_errors(deprecated: bool, warning: str | None) -> list[str]:
    if warning is None:
        return []
    if not deprecated:
        return ["can only be set for deprecated versions"]
    errs: list[str] = []
    if len(warning.encode()) > 256:
        errs.append("must be <= 256 characters long")
    if not warning:
        errs.append("must not be an empty string")
    at = 0
    for char in warning:
        if not char.isprintable():
            errs.append(f"must only contain printable UTF-8 characters; non-printable character found at index {at}")
            break
        at += len(char.encode())
    return errs


def _validate_version_set(inner: InternalSpec, errs: list[FieldError]) -> None:
    listed = [version.get("name", "") for version in inner.versions]
    where = _SPEC.child("versions")
    if len(set(listed)) != len(listed):
        errs.append(invalid(where, inner.shown_versions, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in inner.versions) != 1:
        errs.append(invalid(where, inner.shown_versions, "must have exactly one version marked as storage version"))
    if listed and listed[0]:
        messages = names.check_dns1035_label(listed[0])
        if messages:
            errs.append(invalid(_SPEC.child("version"), listed[0], ",".join(messages)))


def _validate_top(inner: InternalSpec, options: SchemaOptions, before: _Before, errs: list[FieldError]) -> None:
    declared = inner.spec["names"]
    path = _SPEC.child("names")
    errs += (required(path.child(key)) for key in ("plural", "singular", "kind", "listKind") if not declared.get(key))
    validate_names(declared, path, errs)
    schema = (inner.shared.get("validation") or {}).get("openAPIV3Schema")
    if schema is not None:
        has_status = any(map(inner.has_status, inner.versions))
        kept = before.keeping(options, inner.versions[0].get("name", ""), schema)
        errs += validate_schema(schema, _SPEC.child("validation"), kept, has_status=has_status)
        for version in inner.spec["versions"]:  # which are one: the defaults of all have been brought into form
            version["schema"] = inner.shared["validation"]
    validate_subresources(inner.shared.get("subresources"), _SPEC.child("subresources"), errs)
    for at, column in enumerate(inner.shared.get("additionalPrinterColumns") or ()):
        validate_column(column, _SPEC.child("additionalPrinterColumns").index(at), errs)
    fields = inner.shared.get("selectableFields")
    if fields:
        if inner.shared.get("validation") is None:
            why = "may only be set when validations.schema is included"
            errs.append(invalid(_SPEC.child("selectableFields"), "", why))
        else:
            allowed = before.shared_fields == fields
            validate_selectable(fields, schema or {}, _SPEC.child("selectableFields"), errs, allow_many=allowed)


def validate_names(declared: Object, path: Path, errs: list[FieldError]) -> None:
    """Names are labels, kinds in mixed case."""
    for key in ("plural", "singular"):
        text = declared.get(key, "")
        messages = names.check_dns1035_label(text) if text else []
        if messages:
            errs.append(invalid(path.child(key), text, ",".join(messages)))
    for key in ("kind", "listKind"):
        text = declared.get(key, "")
        messages = names.check_dns1035_label(text.lower()) if text else []
        if messages:
            why = "may have mixed case, but should otherwise match: " + ",".join(messages)
            errs.append(invalid(path.child(key), text, why))
    _validate_labels(declared.get("shortNames"), path.child("shortNames"), errs)
    if declared.get("kind") and declared["kind"] == declared.get("listKind"):
        errs.append(invalid(path.child("listKind"), declared["listKind"], "kind and listKind may not be the same"))
    _validate_labels(declared.get("categories"), path.child("categories"), errs)


def _validate_labels(texts: list[str] | None, path: Path, errs: list[FieldError]) -> None:
    for position, text in enumerate(texts or ()):
        messages = names.check_dns1035_label(text)
        if messages:
            errs.append(invalid(path.index(position), text, ",".join(messages)))


def _validate_conversion(conversion: Object, old: Object | None, errs: list[FieldError]) -> None:
    path = _SPEC.child("conversion")
    one_of_required(conversion.get("strategy", ""), ("None", "Webhook"), path, "strategy", errs, plain=True)
    webhook = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    where, reviewed = path.child("webhookClientConfig"), path.child("conversionReviewVersions")
    if conversion.get("strategy") != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errs.append(forbidden(where, why))
        if versions:
            errs.append(forbidden(reviewed, why))
        return
    if client is None:
        errs.append(required(where, "required when strategy is set to Webhook"))
    else:
        _validate_client(client, where, errs)
        if client.get("caBundle") and old is not None and not _allows_bad_bundle(old):
            errs += _bundle_errors(where.child("caBundle"), client["caBundle"])
    _validate_review_versions(versions, reviewed, old, errs)


def _validate_client(client: Object, path: Path, errs: list[FieldError]) -> None:
    url: Any = client.get("url")
    service: Any = client.get("service")
    if (url is None) == (service is None):
        errs.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        validate_url(path.child("url"), url, errs)
    else:
        validate_service(path.child("service"), service, errs)


def _bundle_errors(path: Path, bundle: str) -> list[FieldError]:
    from pilothouse.apis.apiextensions.custom_resource_definition.authorities import AuthoritiesError, check_authorities

    try:
        check_authorities(base64.b64decode(bundle))
    except AuthoritiesError as error:
        return [invalid(path, bundle, f"unable to load root certificates: {error}")]
    return []


def _allows_bad_bundle(old: Object) -> bool:
    if not definitions.is_true(old, definitions.ESTABLISHED):
        return True
    return has_bad_bundle(old["spec"])


def has_bad_bundle(spec: Object) -> bool:
    """Whether the certificates that a conversion webhook is to be checked with cannot be read."""
    client = ((spec.get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    return bool(client.get("caBundle") and _bundle_errors(Path(), client["caBundle"]))


def _validate_review_versions(versions: list[str], path: Path, old: Object | None, errs: list[FieldError]) -> None:
    if not versions:
        errs.append(required(path))
        return
    seen: set[str] = set()
    for position, version in enumerate(versions):
        if version in seen:
            errs.append(invalid(path.index(position), version, "duplicate version"))
            continue
        seen.add(version)
        errs += (invalid(path.index(position), version, why) for why in names.check_dns1035_label(version))
    before = (
        ((old["spec"].get("conversion") or {}).get("webhook") or {}).get("conversionReviewVersions") if old else None
    )
    tolerant = bool(before) and not set(before or ()) & set(_REVIEW_VERSIONS)
    if not tolerant and not set(versions) & set(_REVIEW_VERSIONS):
        errs.append(invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))


def _validate_unchanged(crd: Object, old: Object, errs: list[FieldError]) -> None:
    spec, before = crd["spec"], old["spec"]
    if definitions.is_true(old, definitions.ESTABLISHED):
        unchanged(Named(spec.get("scope", "")), before.get("scope", ""), _SPEC, "scope", errs)
        unchanged(spec["names"].get("kind", ""), before["names"].get("kind", ""), _SPEC.child("names"), "kind", errs)
    unchanged(spec.get("group", ""), before.get("group", ""), _SPEC, "group", errs)
    unchanged(spec["names"].get("plural", ""), before["names"].get("plural", ""), _SPEC.child("names"), "plural", errs)


def _validate_stored(crd: Object, errs: list[FieldError]) -> None:
    stored: list[str] | None = crd["status"].get("storedVersions")
    if not stored:
        errs.append(invalid(_STORED, stored, "must have at least one stored version"))
        return
    known: set[str] = set()
    for version in definitions.versions(crd):
        name = version.get("name", "")
        # A version that is listed twice is looked for twice, and found once.
        if version.get("storage") and (name in known or name not in stored):
            errs.append(invalid(_STORED, stored, f"must have the storage version {name}"))
        known.add(name)
    for position, name in enumerate(stored):
        if name not in known:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            errs.append(invalid(_STORED.index(position), name, why))


def _validate_approval(crd: Object, old: Object | None, errs: list[FieldError]) -> None:
    if not is_protected(crd["spec"].get("group", "")):
        return
    annotations = crd["metadata"].get("annotations") or {}
    reason, message = approval_of(annotations)
    if old is not None and approval_of(old["metadata"].get("annotations"))[0] == reason:
        return
    where = Path("metadata", "annotations").key(definitions.APPROVED_ANNOTATION)
    if reason == "MissingAnnotation":
        errs.append(required(where, message))
    elif reason == "InvalidAnnotation":
        errs.append(invalid(where, annotations.get(definitions.APPROVED_ANNOTATION, ""), message))


def _validate_preserving(crd: Object, old: Object | None, errs: list[FieldError]) -> None:
    if crd["spec"].get("preserveUnknownFields") and not (old or {"spec": {}})["spec"].get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errs.append(invalid(_SPEC.child("preserveUnknownFields"), True, why))
