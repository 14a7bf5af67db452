import copy

import pytest

from pilothouse.apis import types
from pilothouse.apis.resource.conversion import CONVERTERS
from pilothouse.apis.resource.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

CLAIM = types.struct("resource.v1.ResourceClaim")
strategy = STRATEGIES["resourceclaims"]()
status_strategy = strategy.subresources["status"]()
EXACT = {"name": "a", "exactly": {"deviceClassName": "c"}}


def made(devices: Object, status: Object | None = None, **metadata: str) -> Object:
    body = {"metadata": metadata, "spec": {"devices": devices}, "status": status or {}}
    obj = decode(CLAIM, copy.deepcopy(body))[0]
    strategy.default(obj)
    assert decode(CLAIM, obj)[0] == obj
    return obj


def errors_of(devices: Object) -> list[str]:
    return [str(error) for error in strategy.validate(Context(), made(devices))]


UNKNOWN = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ({"requests": [EXACT]}, []),
        ({}, []),
        (
            {"requests": [{"name": "a", "exactly": {}}]},
            ["spec.devices.requests[0].exactly.deviceClassName: Required value"],
        ),
        (
            {"requests": [{"name": "a"}]},
            ["spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"],
        ),
        (
            {"requests": [EXACT, EXACT]},
            [
                'spec.devices.requests[1]: Duplicate value: {"name":"a","exactly":{"deviceClassName":"c",'
                '"allocationMode":"ExactCount","count":1}}'
            ],
        ),
        (
            {
                "requests": [
                    {"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "Odd", "selectors": [{}]}}
                ]
            },
            [
                "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
                'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Odd": supported values: "All", '
                '"ExactCount"',
            ],
        ),
        (
            {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "All", "count": 2}}]},
            [
                "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when "
                "allocationMode is "
                "'All'"
            ],
        ),
        (
            {"requests": [{"name": "a", "firstAvailable": [{"name": "b"}]}]},
            ["spec.devices.requests[0].firstAvailable[0].deviceClassName: Required value"],
        ),
        (
            {"requests": [{"name": str(n), "exactly": {"deviceClassName": "c"}} for n in range(33)]},
            ["spec.devices.requests: Too many: 33: must have at most 32 items"],
        ),
        (
            {"requests": [EXACT], "constraints": [{"requests": ["z"], "matchAttribute": "x"}, {}]},
            [
                f'spec.devices.constraints[0].requests[0]: Invalid value: "z": {UNKNOWN}',
                'spec.devices.constraints[1]: Required value: exactly one of "matchAttribute" or '
                '"distinctAttribute" is required, but multiple fields are set',
                'spec.devices.constraints[0].matchAttribute: Invalid value: "x": a fully qualified name must '
                "be a domain "
                "and a name separated by a slash",
            ],
        ),
        (
            {"requests": [EXACT], "config": [{"requests": ["a"], "opaque": {"driver": "", "parameters": [1]}}]},
            [
                'spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid '
                "JSON object",
                "spec.devices.config[0].opaque.driver: Required value",
            ],
        ),
        (
            {
                "requests": [
                    {
                        "name": "a",
                        "exactly": {
                            "deviceClassName": "c",
                            "tolerations": [{"operator": "Exists", "value": "v"}, {"effect": "Odd", "key": "k"}],
                        },
                    }
                ]
            },
            [
                'spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator '
                "`Exists`",
                'spec.devices.requests[0].exactly.tolerations[1].effect: Unsupported value: "Odd": supported values: '
                '"NoExecute", "NoSchedule", "None"',
            ],
        ),
    ],
)
def test_errors_of_new_claims(devices: Object, expected: list[str]) -> None:
    assert errors_of(devices) == expected


def test_references_to_alternatives() -> None:
    request = {"name": "a", "firstAvailable": [{"name": "b", "deviceClassName": "c"}]}
    constraint = {"matchAttribute": "d.example/x"}
    assert errors_of({"requests": [request], "constraints": [{"requests": ["a/b"], **constraint}]}) == []
    assert errors_of({"requests": [request], "constraints": [{"requests": ["a/x"], **constraint}]}) == [
        f'spec.devices.constraints[0].requests[0]: Invalid value: "a/x": {UNKNOWN}'
    ]


def test_the_spec_never_changes() -> None:
    found = strategy.validate_update(Context(), made({"requests": [{}]}), made({}))
    assert [str(error) for error in found] == ["spec: Invalid value: null: field is immutable"]


def test_a_changed_template_is_checked_as_a_new_one() -> None:
    struct, templates = types.struct("resource.v1.ResourceClaimTemplate"), STRATEGIES["resourceclaimtemplates"]()

    def template(**spec: Object) -> Object:
        return decode(struct, {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": []}}, **spec}})[0]

    found = templates.validate_update(Context(), template(metadata={"name": "x"}), template())
    assert [str(error).partition(": ")[0] for error in found] == ["spec.metadata.name", "spec"]
    assert templates.validate_update(Context(), template(), template()) == []


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        ("open", []),
        (
            "closed",
            [
                "spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the "
                "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
            ],
        ),
        (
            "gone",
            [
                "spec.devices.requests[1].adminAccess: Internal error: could not retrieve namespace to verify admin "
                'access: namespaces "gone" not found'
            ],
        ),
    ],
)
def test_looking_into_devices_of_others_takes_a_labelled_namespace(namespace: str, expected: list[str]) -> None:
    labels = {"open": {"resource.kubernetes.io/admin-access": "true"}, "closed": {}}
    guarded, ctx = STRATEGIES["resourceclaims"](labels_of=labels.get), Context(namespace=namespace)
    claim = made({"requests": [EXACT, {"name": "b", "exactly": {"deviceClassName": "c", "adminAccess": True}}]})
    assert [str(error) for error in guarded.validate(ctx, claim)] == expected

    granted = made({"requests": [EXACT]}, {"allocation": {"devices": {"results": [{**RESULT, "adminAccess": True}]}}})
    status = guarded.subresource("status")
    errs = status.validate_update(ctx, granted, made({"requests": [EXACT]}))
    found = [str(error).partition(":")[0] for error in errs]
    assert found == (["status.allocation.devices.results[0].adminAccess"] if expected else [])
    assert status.validate_update(ctx, granted, granted) == []


RESULT = {"request": "a", "driver": "d", "pool": "p", "device": "x"}
ALLOCATED = {"allocation": {"devices": {"results": [RESULT]}}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, ALLOCATED, []),
        (ALLOCATED, {}, []),
        (
            ALLOCATED,
            {"allocation": {"devices": {"results": [{**RESULT, "device": "y"}]}}},
            ["status.allocation: Invalid value: null: field cannot be modified once set"],
        ),
        (
            {},
            {"reservedFor": [{"resource": "pods", "name": "p"}]},
            [
                "status.reservedFor[0].uid: Required value",
                "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
            ],
        ),
        (
            {},
            {"allocation": {"devices": {"results": [{**RESULT, "request": "z", "driver": "", "pool": "a//b"}]}}},
            [
                f'status.allocation.devices.results[0].request: Invalid value: "z": {UNKNOWN}',
                "status.allocation.devices.results[0].driver: Required value",
                'status.allocation.devices.results[0].pool: Invalid value: "a//b": segment 1: must not be empty',
            ],
        ),
        (
            {},
            {"allocation": {"devices": {"results": [{**RESULT, "pool": "x" * 254}]}}},
            [
                "status.allocation.devices.results[0].pool: Too long: may not be more than 253 bytes",
                f'status.allocation.devices.results[0].pool: Invalid value: "{"x" * 254}": segment 0: must be no more '
                "than 253 bytes",
            ],
        ),
        (
            {},
            {**ALLOCATED, "devices": [{"driver": "d", "pool": "p", "device": "other", "shareID": "1"}]},
            [
                'status.devices[0]: Invalid value: {"Driver":"d","Pool":"p","Device":"other","ShareID":"1"}: must be an'
                " allocated device in the claim",
                'status.devices[0].shareID: Invalid value: "1": must be a lowercase UUID in 8-4-4-4-12 format',
            ],
        ),
    ],
)
def test_errors_of_a_status(before: Object, after: Object, expected: list[str]) -> None:
    devices = {"requests": [EXACT]}
    found = status_strategy.validate_update(Context(), made(devices, after), made(devices, before))
    assert [str(error) for error in found] == expected


def test_devices_that_are_given_back_lose_their_state() -> None:
    state = {"driver": "d", "pool": "p", "device": "x", "conditions": None}
    devices = {"requests": [EXACT]}
    obj = made(devices, {"devices": [state]})
    status_strategy.prepare_for_update(Context(), obj, made(devices, {**ALLOCATED, "devices": [state]}))
    assert obj["status"] == {}


@pytest.mark.parametrize(
    ("status", "metadata", "expected"),
    [
        ({}, {}, "pending"),
        (ALLOCATED, {}, "allocated"),
        ({**ALLOCATED, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}, {}, "allocated,reserved"),
        ({}, {"deletionTimestamp": "2030-01-01T00:00:00Z"}, "deleted"),
    ],
)
def test_states(status: Object, metadata: dict[str, str], expected: str) -> None:
    assert strategy.columns[1].cell(made({}, status, **metadata)) == expected


def test_older_claims_convert_there_and_back() -> None:
    older = {
        "name": "a",
        "deviceClassName": "c",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"operator": "Exists"}],
    }
    alternatives = {"name": "b", "deviceClassName": "", "firstAvailable": [{"name": "x", "deviceClassName": "c"}]}
    struct = types.struct("resource.v1beta1.ResourceClaim")
    body = decode(struct, {"spec": {"devices": {"requests": [older, alternatives]}}})[0]
    to_hub, from_hub = CONVERTERS["v1beta1", "resourceclaims"]
    hub = to_hub(body)
    first, second = hub["spec"]["devices"]["requests"]
    assert first == {"name": "a", "exactly": {key: value for key, value in older.items() if key != "name"}}
    assert "exactly" not in second
    assert decode(CLAIM, hub)[0] == hub
    assert from_hub(hub) == body


def test_tolerations_mean_equality_unless_they_say_otherwise() -> None:
    request = {"name": "a", "exactly": {"deviceClassName": "c", "tolerations": [{"key": "k"}]}}
    result = {**RESULT, "tolerations": [{"key": "k"}]}
    obj = made({"requests": [request]}, {"allocation": {"devices": {"results": [result]}}})
    assert obj["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] == [{"key": "k", "operator": "Equal"}]
    assert obj["status"]["allocation"]["devices"]["results"][0]["tolerations"] == [{"key": "k", "operator": "Equal"}]
