from pilothouse.apis import types
from pilothouse.apis.node.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

strategy = STRATEGIES["runtimeclasses"]()


def made(body: Object) -> Object:
    return decode(types.struct("node.v1.RuntimeClass"), body)[0]


def errors_of(body: Object, old: Object | None = None) -> list[str]:
    if old is None:
        return [str(error) for error in strategy.validate(Context(), made(body))]
    return [str(error) for error in strategy.validate_update(Context(), made(body), made(old))]


def test_a_handler_is_required_and_a_label() -> None:
    assert errors_of({"handler": "runc"}) == []
    assert errors_of({}) == ["handler: Required value"]
    assert errors_of({"handler": "A"})[0].startswith('handler: Invalid value: "A": a lowercase RFC 1123 label')


IMMUTABLE = "handler: Invalid value: null: field is immutable"


def test_a_handler_never_changes() -> None:
    assert errors_of({"handler": "a"}, {"handler": "b"}) == [IMMUTABLE]
    assert errors_of({}, {"handler": "b"}) == [IMMUTABLE, "handler: Required value"]


def test_the_form_of_a_changed_handler_is_told_first() -> None:
    found = errors_of({"handler": "A", "overhead": {"podFixed": {"a": "1"}}}, {"handler": "b"})
    assert found[0].startswith('handler: Invalid value: "A": a lowercase RFC 1123 label')
    assert found[-1] == IMMUTABLE


def test_tolerations_and_overhead_follow_the_rules_of_pods() -> None:
    toleration = {"key": "a", "operator": "Equal", "value": "b"}
    body = {
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "-1"}},
        "scheduling": {"nodeSelector": {"a b": ""}, "tolerations": [toleration, toleration]},
    }
    found = errors_of(body)
    assert found[0] == 'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'
    assert found[1].startswith('scheduling.nodeSelector: Invalid value: "a b"')
    assert found[2] == (
        'scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Equal","Value":"b","Effect":"",'
        '"TolerationSeconds":null}'
    )


def test_old_node_labels_earn_a_warning() -> None:
    body = {"handler": "h", "scheduling": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}}
    assert strategy.warnings_on_create(Context(), made(body)) == [
        'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
