import pytest

from pilothouse.apis import types
from pilothouse.apis.apiregistration.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

strategy = STRATEGIES["apiservices"]()
LOCAL = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
REMOTE = {**LOCAL, "service": {"namespace": "n", "name": "s"}}


def made(spec: Object, name: str = "v1.example.com") -> Object:
    struct = types.struct("apiregistration.v1.APIService")
    obj = decode(struct, {"metadata": {"name": name}, "spec": spec})[0]
    strategy.default(obj)
    assert decode(struct, obj)[0] == obj
    return obj


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (LOCAL, []),
        (REMOTE, []),
        (
            {**LOCAL, "groupPriorityMinimum": 0, "versionPriority": 1001},
            [
                "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            ],
        ),
        (
            {**LOCAL, "caBundle": "AAAA", "insecureSkipTLSVerify": True},
            [
                'spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle',
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
            ],
        ),
        (
            {**REMOTE, "caBundle": "AAAA", "insecureSkipTLSVerify": True, "service": {"port": 0}},
            [
                "spec.service.namespace: Required value",
                "spec.service.name: Required value",
                "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
            ],
        ),
    ],
)
def test_errors(spec: Object, expected: list[str]) -> None:
    assert [str(error) for error in strategy.validate(Context(), made(spec))] == expected


def test_a_service_is_named_after_what_it_serves() -> None:
    other = made(LOCAL, "x")
    [found] = strategy.validate_update(Context(), other, other)
    assert strategy.name_rule(other)("x", False) == [str(found).partition('"x": ')[2]]
    assert str(found) == 'metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1.example.com"'


def test_local_services_are_available_at_once() -> None:
    obj = made(LOCAL)
    strategy.prepare_for_create(Context(now="2030-01-01T00:00:00Z"), obj)
    assert [column.cell(obj) for column in strategy.columns[:3]] == ["v1.example.com", "Local", "True"]
    remote = made(REMOTE)
    strategy.prepare_for_create(Context(), remote)
    assert [column.cell(remote) for column in strategy.columns[:3]] == ["v1.example.com", "n/s", "Unknown"]


def test_status_writes_take_only_the_status() -> None:
    old = made(LOCAL)
    obj = made(REMOTE)
    obj["metadata"]["labels"] = {"a": "b"}
    obj["status"] = {"conditions": [{"type": "Available", "status": "Maybe"}]}
    status = strategy.subresources["status"]()
    status.prepare_for_update(Context(), obj, old)
    assert (obj["spec"], obj["metadata"]) == (old["spec"], old["metadata"])
    [found] = status.validate_update(Context(), obj, old)
    assert str(found).startswith('status.conditions[0].status: Unsupported value: "Maybe"')


def test_an_update_judges_the_metadata_as_that_of_a_new_object() -> None:
    service = made(LOCAL)
    service["metadata"] |= {"labels": {"a": "/"}, "finalizers": ["a b"]}
    errs = strategy.validate_update(Context(), service, service)
    assert list(dict.fromkeys(error.field for error in errs)) == ["metadata.labels", "metadata.finalizers"]
