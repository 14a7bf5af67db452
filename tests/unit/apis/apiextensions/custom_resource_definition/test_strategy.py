"""CustomResourceDefinitions as a write sees them: defaults, errors in kube-apiserver's words, permitted updates."""

from __future__ import annotations

import base64
import copy

import pytest

from pilothouse.apis.apiextensions.custom_resource_definition.strategy import (
    DefinitionStatusStrategy,
    DefinitionStrategy,
)
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.strategy import Context
from pilothouse.apis.types import struct
from pilothouse.machinery.schema.decoding import decode

CTX = Context(now="2026-01-02T03:04:05Z")
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}


def version(name="v1", *, schema=SCHEMA, storage=True, **more):
    made = {"name": name, "served": True, "storage": storage, **more}
    return made if schema is None else {**made, "schema": {"openAPIV3Schema": schema}}


def definition(*versions, **spec):
    names = {"plural": "boxes", "kind": "Box"}
    return {
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": list(versions) or [version()],
            **spec,
        },
        "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None},
    }


def created(crd):
    strategy = DefinitionStrategy()
    strategy.default(crd)
    strategy.prepare_for_create(CTX, crd)
    return crd


def errors_of(crd):
    return [str(error) for error in DefinitionStrategy().validate(CTX, created(crd))]


def test_defaults_of_embedded_objects_lose_metadata_that_is_none():
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    default = {"apiVersion": "v1", "kind": "X", "metadata": {"odd": 1, "name": "a"}}
    schema = {"type": "object", "properties": {"a": {**embedded, "default": default}}}
    crd = definition(version(schema=schema), version("v2", schema=copy.deepcopy(schema), storage=False))
    assert errors_of(crd) == []
    for each in crd["spec"]["versions"]:
        stored = each["schema"]["openAPIV3Schema"]["properties"]["a"]["default"]
        assert stored == {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}}


def test_defaults():
    crd = created(
        definition(conversion={"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "a"}}}})
    )
    assert crd["spec"]["names"] == {"plural": "boxes", "kind": "Box", "singular": "box", "listKind": "BoxList"}
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443
    assert created(definition())["spec"]["conversion"] == {"strategy": "None"}
    assert crd["status"]["storedVersions"] == ["v1"]


def test_a_good_definition_has_no_errors():
    assert errors_of(definition()) == []
    assert errors_of(definition(version(), version("v2", storage=False))) == []


TOP = "spec.validation.openAPIV3Schema"


@pytest.mark.parametrize(
    ("crd", "expected"),
    [
        (
            definition(group="plain"),
            [
                'metadata.name: Invalid value: "boxes.example.com": must be spec.names.plural+"."+spec.group',
                'spec.group: Invalid value: "plain": should be a domain with at least one dot',
            ],
        ),
        (
            definition(scope="Global"),
            ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"'],
        ),
        (definition(version(schema=None)), ["spec.versions[0].schema.openAPIV3Schema: Required value"]),
        (definition(version(), version("v1", storage=False)), ["must contain unique version names"]),
        (
            definition(version(), version()),
            [
                "must contain unique version names",
                "must have exactly one version marked as storage version",
                'status.storedVersions: Invalid value: ["v1"]: must have the storage version v1',
            ],
        ),
        (
            definition(version(storage=False)),
            [
                "must have exactly one version marked as storage version",
                "status.storedVersions: Invalid value: null: must have at least one stored version",
            ],
        ),
        (definition(version("V1")), ["a DNS-1035 label", "spec.version: Invalid value"]),
        (
            definition(names={"plural": "boxes", "kind": "Box", "listKind": "Box"}),
            ['spec.names.listKind: Invalid value: "Box": kind and listKind may not be the same'],
        ),
        (definition(preserveUnknownFields=True), ["cannot set to true, set x-kubernetes-preserve-unknown-fields"]),
        (definition(version(schema={"type": "array", "items": {"type": "string"}})), [f"{TOP}.type: Invalid value"]),
        (
            definition(version(schema={"properties": {"a": {}}})),
            [
                f"{TOP}.properties[a].type: Required value: must not be empty for specified object fields",
                f"{TOP}.type: Required value: must not be empty at the root",
            ],
        ),
        (
            definition(version(schema={"type": "object", "properties": {"a": {"type": "array"}}})),
            [f"{TOP}.properties[a].items: Required value: must be specified"],
        ),
        (
            definition(version(schema={"type": "object", "anyOf": [{"properties": {"x": {}}}]})),
            [f"{TOP}.properties[x]: Required value: because it is defined in {TOP}.anyOf[0].properties[x]"],
        ),
        (
            definition(version(schema={"type": "object", "$ref": "#/x"})),
            [f"{TOP}.$ref: Forbidden: $ref is not supported"],
        ),
        (
            definition(version(schema={"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}})),
            ["must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"],
        ),
        (
            definition(
                version(
                    schema={
                        "type": "object",
                        "properties": {
                            "a": {
                                "type": "string",
                                "default": "x",
                                "maxLength": 9,
                                "x-kubernetes-validations": [
                                    {"rule": "quantity(self).isInteger()"},
                                    {"rule": "self < 'b'"},
                                ],
                            }
                        },
                    }
                )
            ),
            [
                f'{TOP}.properties[a].default: Invalid value: "string": quantities must match the regular expression',
                f"{TOP}.properties[a].default: Invalid value: \"x\": failed rule: self < 'b'",
            ],
        ),
        (
            definition(version(schema={"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}})),
            [f'{TOP}.properties[a].default: Invalid value: "string"'],
        ),
        (
            definition(version(schema={"type": "object", "default": {}})),
            [f"{TOP}.default.apiVersion: Required value", f"{TOP}.default.kind: Required value"],
        ),
        (
            definition(
                version(schema={"type": "object", "properties": {"a": {"type": "object", "default": {"b": 1}}}})
            ),
            [f'{TOP}.properties[a].default: Invalid value: {{"b":1}}: must not have unknown fields'],
        ),
        (
            definition(
                version(schema={"type": "object", "properties": {"a": {"type": "object", "default": {"c": 1, "b": 2}}}})
            ),
            [f'{TOP}.properties[a].default: Invalid value: {{"b":2,"c":1}}: must not have unknown fields'],
        ),
        (
            definition(
                version(
                    schema={
                        "type": "object",
                        "properties": {
                            "a": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}
                        },
                    }
                )
            ),
            [f"{TOP}.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty"],
        ),
        (
            definition(
                version(
                    schema={"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [{}]}}}
                )
            ),
            [f"{TOP}.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified"],
        ),
        (
            definition(version(additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": "spec"}])),
            [
                'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,',
                'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path',
            ],
        ),
        (
            definition(version(subresources={"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ""}})),
            [
                'spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path',
                "spec.subresources.scale.statusReplicasPath: Required value",
            ],
        ),
        (
            definition(
                version(selectableFields=[{"jsonPath": ".spec"}, {"jsonPath": ".none"}, {"jsonPath": ".spec.a[0]"}])
            ),
            [
                'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string',
                'spec.selectableFields[1].jsonPath: Invalid value: ".none": is an invalid path: does not refer to',
                "array notation is not allowed",
            ],
        ),
        (definition(version(deprecationWarning="old")), ["can only be set for deprecated versions"]),
        (
            definition(
                version(schema={"type": "object", "properties": {"metadata": {"type": "object", "maxItems": 0}}})
            ),
            [f"{TOP}.properties[metadata]: Forbidden: must not specify anything other than name and generateName"],
        ),
        (
            definition(version(schema={"type": "object", "additionalItems": False, "properties": {"a": {}}})),
            [f"{TOP}.additionalItems: Forbidden: additionalItems is not supported"],
        ),
        (
            definition(conversion={"strategy": "Webhook"}),
            [
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "spec.conversion.conversionReviewVersions: Required value",
            ],
        ),
    ],
)
def test_errors(crd, expected):
    found = errors_of(crd)
    assert len(found) == len(expected), found
    for error, part in zip(found, expected, strict=True):
        assert part in error


@pytest.mark.parametrize(
    ("items", "why"),
    [
        (None, "Required value: must have a schema"),
        ("x", 'Invalid value: {"Schema":null,"JSONSchemas":null}: must only have a single schema'),
        ([], 'Invalid value: {"Schema":null,"JSONSchemas":[]}: must only have a single schema'),
    ],
)
def test_items_that_are_no_schema(items, why):
    listed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}
    given, _ = decode(struct("apiextensions.v1.JSONSchemaProps"), listed, noting=True)
    found = errors_of(definition(version(schema={"type": "object", "properties": {"spec": given}})))
    path = "spec.validation.openAPIV3Schema.properties[spec].items"
    assert f"{path}: {why} if x-kubernetes-list-type is map" in found


@pytest.mark.parametrize("default", [True, 1.5, [], [1], {}])
def test_defaults_of_numbers_or_texts_are_of_any_type(default):
    either = {"x-kubernetes-int-or-string": True, "default": default}
    assert errors_of(definition(version(schema={"type": "object", "properties": {"spec": either}}))) == []


def test_errors_of_single_versions_name_them():
    other = {"type": "object", "properties": {"a": {}}}
    found = errors_of(definition(version(), version("v2", storage=False, schema=other)))
    assert found == [
        "spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified "
        "object fields"
    ]


def test_refused_versions_are_shown_as_the_original_holds_them():
    found = errors_of(definition(version(storage=False)))
    assert (
        '[{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,'
        in found[0]
    )


def test_protected_groups_need_approval():
    crd = definition(group="example.k8s.io")
    crd["metadata"]["name"] = "boxes.example.k8s.io"
    assert "protected groups must have approval annotation" in errors_of(copy.deepcopy(crd))[0]
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.org/1"}
    assert errors_of(crd) == []


def updated(old, new):
    strategy = DefinitionStrategy()
    strategy.default(new)
    strategy.prepare_for_update(CTX, new, old)
    return new, [str(error) for error in strategy.validate_update(CTX, new, old)]


def test_stored_versions_follow_the_storage_version():
    old = created(definition())
    new, errs = updated(old, definition(version(storage=False), version("v2")))
    assert errs == []
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    _, errs = updated(new, definition(version("v2")))
    assert "v1 was previously a storage version" in errs[0]


def test_names_and_scope_stay_once_established():
    old = created(definition())
    assert updated(old, definition(scope="Cluster"))[1] == []
    old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    assert updated(old, definition(scope="Cluster"))[1] == ['spec.scope: Invalid value: "Cluster": field is immutable']


def test_warnings():
    schema = {
        "type": "object",
        "properties": {
            "f": {"type": "string", "format": "postcode"},
            "s": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "array", "items": {"type": "string"}},
            },
        },
    }
    strategy = DefinitionStrategy()
    crd = created(definition(version(schema=schema)))
    assert strategy.warnings_on_create(CTX, crd) == [
        'unrecognized format "postcode"',
        'x-kubernetes-list-type: set for items of type "array" is not supported by server-side apply or CEL '
        "validation rules",
    ]
    assert strategy.warnings_on_update(CTX, crd, crd) == []


def test_deletion_begins_with_a_mark():
    crd = created(definition())
    assert DefinitionStrategy().begin_deletion(CTX, crd)
    assert crd["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert crd["status"]["conditions"][0]["reason"] == "InstanceDeletionPending"


def test_the_status_can_trim_stored_versions_but_not_empty_them():
    crd = created(definition())
    crd["status"]["storedVersions"] = []
    DefinitionStatusStrategy().default(crd)
    assert crd["status"]["storedVersions"] == ["v1"]


def nested_schema(depth):
    schema = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_absurdly_deep_schemas_are_refused():
    assert errors_of(definition(version(schema=nested_schema(20_000)))) == [
        "spec.versions: Forbidden: schemas may not be nested deeper than 128 levels"
    ]


def test_the_deepest_schema_that_is_taken_can_be_used():
    schema = nested_schema(127)
    assert errors_of(definition(version(schema=schema))) == []
    compiled = ObjectSchema(schema)
    obj = {"a": {"b": 1}}
    assert compiled.clean(obj) == ["a.b"]
    assert compiled.errors(obj) == []
    assert [error.field for error in compiled.errors({"a": 1})] == ["a"]


def test_table_cells():
    crd = created(definition(version(), version("v2", storage=False)))
    cells = [column.cell(crd) for column in DefinitionStrategy.columns if column.name != "Created At"]
    assert cells == ["boxes.example.com", "Namespaced", "v1(storage),v2", "example.com", "Box", "", False]


def changing(map_type):
    field = {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    a = {"type": "object", "x-kubernetes-map-type": map_type, "properties": {"b": field}}
    return definition(version(schema={"type": "object", "properties": {"a": a}}))


def test_parts_of_atomic_maps_have_old_values_too():
    assert errors_of(changing("atomic")) == errors_of(changing("granular")) == []
    where = f"{TOP}.properties[a]"
    assert errors_of(changing("other")) == [
        f'{where}.x-kubernetes-map-type: Unsupported value: "other": supported values: "atomic", "granular"',
        f'{where}.properties[b].x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be '
        f"used on the uncorrelatable portion of the schema within {where}",
    ]


def test_only_the_first_storage_version_is_taken_down():
    new = definition(version(storage=False), version("v2"), version("v3"))
    DefinitionStrategy().prepare_for_update(CTX, new, created(definition(version())))
    assert new["status"]["storedVersions"] == ["v1", "v2"]


def test_errors_of_metadata_come_in_their_place():
    crd = definition(names={"plural": "others", "kind": "Box"})
    crd["metadata"].update(generateName="box-", labels={"a b": "c"})
    wanted = 'must be spec.names.plural+"."+spec.group'
    assert [error.partition(":")[0] for error in errors_of(crd)] == [
        "metadata.generateName",
        "metadata.name",
        "metadata.labels",
    ]
    assert errors_of(crd)[0] == f'metadata.generateName: Invalid value: "box-": {wanted}'


def test_large_definitions_are_heavy():
    few = {"type": "object", "properties": {f"a{number}": {"type": "string"} for number in range(10)}}
    many = {"type": "object", "properties": {f"a{number}": {"type": "string"} for number in range(3000)}}
    strategy = DefinitionStrategy()
    assert not strategy.is_heavy(definition(version(schema=few)))
    assert strategy.is_heavy(definition(version(schema=few), version("v2", schema=many)))


@pytest.mark.parametrize(
    ("bundle", "why"),
    [
        (b"x", "unable to parse bytes as PEM block"),
        (b"-----BEGIN A-----\nAAAA\n-----END A-----\n", "no valid certificate authority data seen"),
        (b"-----BEGIN A-----\nAAAA\n-----END A-----\n more", "unable to parse bytes as PEM block"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "failed to parse certificate: x509: malformed certificate",
        ),
    ],
)
def test_authorities_of_a_conversion_webhook(bundle, why):
    text = base64.b64encode(bundle).decode()
    client = {"url": "https://a.b/c", "caBundle": text}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    crd, old = definition(conversion={"strategy": "Webhook", "webhook": webhook}), created(definition())
    assert errors_of(crd) == []
    old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    assert [str(error) for error in DefinitionStrategy().validate_update(CTX, crd, old)] == [
        f'spec.conversion.webhookClientConfig.caBundle: Invalid value: "{text}": '
        f"unable to load root certificates: {why}"
    ]
