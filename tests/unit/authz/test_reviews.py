import pytest

from pilothouse.authz import reviews
from pilothouse.authz.authorizer import AuthorizationFailed, Decision, PathRule, ResourceRule, Rules
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.user import User


class Asked:
    """Answers what it was told to and remembers the question."""

    def __init__(self, answer=(Decision.ALLOW, "why")):
        self.answer = answer

    async def authorize(self, attributes):
        self.attributes = attributes
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


GET_PODS = {"verb": "get", "resource": "pods"}


def error_of(function, *arguments):
    with pytest.raises(StatusError) as caught:
        function(*arguments)
    return caught.value


ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {},
            f"[spec: Invalid value: null: {ONE_OF}, "
            'spec.user: Invalid value: "": at least one of user or group must be specified]',
        ),
        (
            {"user": "x", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/x", "verb": "get"}},
            f'spec: Invalid value: {{"Path":"/x","Verb":"get"}}: {ONE_OF}',
        ),
        (
            {"user": "x", "resourceAttributes": {"fieldSelector": {"rawSelector": "a=b", "requirements": [
                {"key": "a", "operator": "In", "values": ["b"]}]}}},
            'spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "a=b": may not specified at the same '
            "time as requirements",
        ),
        (
            {"user": "x", "resourceAttributes": {"labelSelector": {}}},
            "spec.resourceAttributes.labelSelector.requirements: Required value: when "
            "spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required",
        ),
        (
            {"user": "x", "resourceAttributes": {"fieldSelector": {"requirements": [
                {"operator": "In"}, {"key": "a", "operator": "Exists", "values": ["b"]}]}}},
            "[spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified, "
            "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified when "
            "`operator` is 'In' or 'NotIn', spec.resourceAttributes.fieldSelector.requirements[1].values: Forbidden: "
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist']",
        ),
    ],
)  # fmt: skip
def test_subject_access_review_errors(spec, message):
    error = error_of(reviews.validate_subject_access_review, {"spec": spec})
    assert (error.code, error.message) == (422, f'.authorization.k8s.io "" is invalid: {message}')
    assert "kind" not in error.details


def test_metadata_must_be_empty():
    review = {"metadata": {"name": "x"}, "spec": {"resourceAttributes": GET_PODS}}
    error = error_of(reviews.validate_self_subject_access_review, review)
    assert error.message == '.authorization.k8s.io "" is invalid: metadata: Invalid value: {"name":"x"}: must be empty'
    review["metadata"] = {"managedFields": [{}]}
    reviews.validate_self_subject_access_review(review)


@pytest.mark.parametrize(
    ("namespace", "spec", "message"),
    [
        (
            "ns",
            {"user": "x", "resourceAttributes": {"namespace": "default"}},
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "default": must '
            "match metadata.namespace",
        ),
        (
            "ns",
            {"user": "x", "nonResourceAttributes": {"path": "/x", "verb": "get"}},
            '.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: '
            '{"Path":"/x","Verb":"get"}: disallowed on this kind of request',
        ),
        (
            "other",
            {"user": "x", "resourceAttributes": {"namespace": "ns"}},
            "spec.resourceAttributes.namespace must match namespace: other",
        ),
    ],
)
def test_local_subject_access_review_errors(namespace, spec, message):
    review = {"metadata": {"namespace": "ns"}, "spec": spec}
    assert error_of(reviews.validate_local_subject_access_review, review, namespace).message == message


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ((Decision.ALLOW, "why"), {"allowed": True, "reason": "why"}),
        ((Decision.ALLOW, ""), {"allowed": True}),
        ((Decision.NO_OPINION, ""), {"allowed": False}),
        ((Decision.DENY, "no"), {"allowed": False, "denied": True, "reason": "no"}),
        (AuthorizationFailed("broken"), {"allowed": False, "evaluationError": "broken"}),
    ],
)
async def test_access_status(answer, status):
    review = {"spec": {"user": "jane", "resourceAttributes": GET_PODS}}
    assert (await reviews.review_access(review, Asked(answer)))["status"] == status


async def test_access_attributes():
    spec = {
        "user": "jane", "uid": "1", "groups": ["a"], "extra": {"k": ["v"]},
        "resourceAttributes": {
            "verb": "list", "group": "apps", "resource": "deployments", "subresource": "scale", "name": "n",
            "namespace": "ns", "fieldSelector": {"rawSelector": "spec.nodeName=x"},
            "labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}]},
        },
    }  # fmt: skip
    asked = Asked()
    await reviews.review_access({"spec": spec}, asked)
    found = asked.attributes
    assert found.user == User("jane", "1", ("a",), {"k": ("v",)})
    assert (found.version, found.resource, found.subresource, found.namespace) == ("*", "deployments", "scale", "ns")
    assert [str(requirement) for requirement in found.field_selector] == ["spec.nodeName=x"]
    assert [str(requirement) for requirement in found.label_selector] == ["a"]
    await reviews.review_access({"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}}, asked, User("me"))
    assert (asked.attributes.user.name, asked.attributes.path, asked.attributes.resource_request) == ("me", "/x", False)


@pytest.mark.parametrize(
    ("selector", "requirements", "error"),
    [
        (
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Is", "values": ["b"]}]}},
            0, "spec.resourceAttributes.labelSelector ignored due to parse error",
        ),
        (
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Is"}, {"key": "b", "operator": "Exists"}]}},
            1, "spec.resourceAttributes.labelSelector partially ignored due to parse error",
        ),
        (
            {"fieldSelector": {"rawSelector": "a"}},
            0, "spec.resourceAttributes.fieldSelector ignored due to parse error",
        ),
        (
            {"fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}},
            0, "spec.resourceAttributes.fieldSelector ignored due to parse error",
        ),
    ],
)  # fmt: skip
async def test_selectors_that_are_not_understood(selector, requirements, error):
    asked = Asked((Decision.NO_OPINION, ""))
    review = {"spec": {"user": "jane", "resourceAttributes": {**GET_PODS, **selector}}}
    answer = await reviews.review_access(review, asked)
    assert answer["status"] == {"allowed": False, "evaluationError": error}
    assert len(asked.attributes.field_selector) + len(asked.attributes.label_selector) == requirements


async def test_rules_review():
    class Resolver:
        def rules_for(self, user, namespace):
            return lambda: Rules(
                (ResourceRule(("get",), ("",), ("pods",)),), (PathRule(("get",), ("/x",)),), True, "oops"
            )

    review = {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": "ns"}}
    answer = await reviews.review_rules(review, Resolver(), User("x"))
    assert answer["spec"] == {}
    assert answer["status"] == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        "incomplete": True,
        "evaluationError": "oops",
    }
    with pytest.raises(StatusError) as caught:
        await reviews.review_rules({"spec": {}}, Resolver(), User("x"))
    assert (caught.value.code, caught.value.message) == (400, "no namespace on request")
