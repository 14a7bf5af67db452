import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.audit.policy import LEVELS, METADATA, NONE, REQUEST, REQUEST_RESPONSE, parse_policy, path_matches
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.machinery.user import User

HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
JANE = User("jane", groups=("devs", "system:authenticated"))


def policy(rules, more=""):
    return parse_policy(f"{HEAD}{more}rules:\n{rules}".encode())


def judge(made, method, path, user=JANE):
    return made.judge(user, resolve(method, path, Query("")))


@pytest.mark.parametrize(
    ("rule", "method", "path", "matches"),
    [
        ("{level: Metadata}", "GET", "/version", True),
        ("{level: Metadata, users: [jane]}", "GET", "/version", True),
        ("{level: Metadata, users: [joe]}", "GET", "/version", False),
        ("{level: Metadata, userGroups: [devs]}", "GET", "/version", True),
        ("{level: Metadata, userGroups: [ops]}", "GET", "/version", False),
        ("{level: Metadata, verbs: [get]}", "POST", "/api/v1/pods", False),
        ("{level: Metadata, namespaces: [a]}", "GET", "/api/v1/namespaces/a/pods", True),
        ("{level: Metadata, namespaces: [a]}", "GET", "/api/v1/nodes", False),
        ('{level: Metadata, namespaces: [""]}', "GET", "/api/v1/nodes", True),
        ("{level: Metadata, resources: [{resources: [pods]}]}", "GET", "/api/v1/pods", True),
        ("{level: Metadata, resources: [{resources: [pods]}]}", "GET", "/api/v1/namespaces/a/pods/x/log", False),
        ("{level: Metadata, resources: [{resources: [pods/log]}]}", "GET", "/api/v1/namespaces/a/pods/x/log", True),
        ("{level: Metadata, resources: [{resources: ['pods/*']}]}", "GET", "/api/v1/namespaces/a/pods/x/log", True),
        ("{level: Metadata, resources: [{resources: ['*/log']}]}", "GET", "/api/v1/namespaces/a/pods/x/log", True),
        ("{level: Metadata, resources: [{resources: ['*']}]}", "GET", "/api/v1/namespaces/a/pods/x/log", True),
        ("{level: Metadata, resources: [{group: apps}]}", "GET", "/api/v1/pods", False),
        ("{level: Metadata, resources: [{group: '*'}]}", "GET", "/apis/apps/v1/deployments", True),
        (
            "{level: Metadata, resources: [{resources: [pods], resourceNames: [x]}]}",
            "GET",
            "/api/v1/namespaces/a/pods/x",
            True,
        ),
        (
            "{level: Metadata, resources: [{resources: [pods], resourceNames: [x]}]}",
            "GET",
            "/api/v1/namespaces/a/pods/y",
            False,
        ),
        ("{level: Metadata, nonResourceURLs: ['/healthz*']}", "GET", "/healthz/ping", True),
        ("{level: Metadata, nonResourceURLs: ['/healthz*']}", "GET", "/api/v1/pods", False),
        ("{level: Metadata, nonResourceURLs: ['*']}", "GET", "/api/v1/pods", False),
    ],
)
def test_rules(rule, method, path, matches):
    made = policy(f"- {rule}\n")
    assert (judge(made, method, path).level == METADATA) is matches
    assert (judge(made, method, path).level == METADATA) is matches  # from memory


def test_the_first_rule_that_matches_decides():
    made = policy("- {level: None, users: [joe]}\n- {level: Request, verbs: [list]}\n- {level: RequestResponse}\n")
    assert judge(made, "GET", "/api/v1/pods").level == REQUEST
    assert judge(made, "POST", "/api/v1/pods").level == REQUEST_RESPONSE
    assert judge(made, "GET", "/api/v1/pods", User("joe")).level == NONE


def test_stages_and_managed_fields_of_policy_and_rule():
    more = "omitStages: [RequestReceived]\nomitManagedFields: true\n"
    made = policy(
        "- {level: Metadata, verbs: [list], omitStages: [Panic], omitManagedFields: false}\n- {level: Metadata}\n", more
    )
    first, second = judge(made, "GET", "/api/v1/pods"), judge(made, "POST", "/api/v1/pods")
    assert (first.omitted, first.omit_managed_fields) == ({"RequestReceived", "Panic"}, False)
    assert (second.omitted, second.omit_managed_fields) == ({"RequestReceived"}, True)


def test_nobody_matches_rules_for_somebody():
    made = policy("- {level: None, users: ['']}\n- {level: Metadata}\n")
    assert judge(made, "GET", "/version", None).level == NONE
    assert judge(policy("- {level: Metadata, userGroups: [x]}\n"), "GET", "/version", None).level == NONE


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "failed decoding"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1beta1\nrules: [{level: None}]", "unknown group version field"),
        (HEAD, "loaded illegal policy with 0 rules"),
        (HEAD + "rules: [{}]", "rules[0].level: Required value"),
        (HEAD + "rules: [{level: Some}]", 'rules[0].level: Unsupported value: "Some"'),
        (HEAD + "rules: [{level: None, nonResourceURLs: [a]}]", "must begin with a '/' character"),
        (HEAD + "rules: [{level: None, nonResourceURLs: ['/a*b']}]", "must be the final character of the rule"),
        (
            HEAD + "rules: [{level: None, nonResourceURLs: ['/a'], namespaces: [x]}]",
            "rules cannot apply to both regular resources and non-resource URLs",
        ),
        (HEAD + "rules: [{level: None, resources: [{group: a/v1}]}]", "rules[0].resources.group: Invalid value"),
        (HEAD + "rules: [{level: None, resources: [{resourceNames: [x]}]}]", "requires at least one resource"),
        (HEAD + "omitStages: [Never]\nrules: [{level: None}]", "allowed stages are RequestReceived,ResponseStarted"),
        (HEAD + "rules: [{level: None, users: x}]", "Go struct field PolicyRule.rules.users of type []string"),
        (HEAD + "rules: x", "cannot unmarshal string into Go struct field Policy.rules of type []v1.PolicyRule"),
    ],
)
def test_wrong_policies(text, error):
    with pytest.raises(ValueError) as caught:
        parse_policy(text.encode())
    assert error in str(caught.value)


@given(st.text("/ab*", max_size=6), st.text("/ab", max_size=6))
def test_path_patterns(wanted, path):
    expected = wanted == "*" or wanted == path or (wanted[-1:] == "*" and path.startswith(wanted.rstrip("*")))
    assert path_matches(path, wanted) is expected


@st.composite
def rules_of_policies(draw):
    """Rules that are about some, in flow style."""

    def some(*values):
        return draw(st.lists(st.sampled_from(values), max_size=2, unique=True))

    fields = {
        "level": draw(st.sampled_from(["None", "Metadata", "Request", "RequestResponse"])),
        "users": some("jane", "joe"),
        "userGroups": some("devs", "ops"),
        "verbs": some("get", "list"),
    }
    if draw(st.booleans()):
        fields["nonResourceURLs"] = some("/version", "/healthz*")
    else:
        fields["namespaces"] = some("a", "b")
    return orjson.dumps({key: value for key, value in fields.items() if value}).decode()


@given(st.lists(rules_of_policies(), min_size=1, max_size=6), st.sampled_from(["jane", "joe", "ann"]), st.data())
def test_rules_filed_by_whom_they_are_about_decide_in_their_order(rules, name, data):
    user = User(name, groups=tuple(data.draw(st.lists(st.sampled_from(["devs", "ops"]), unique=True))))
    path = data.draw(st.sampled_from(["/version", "/healthz/x", "/api/v1/namespaces/a/pods", "/api/v1/nodes"]))
    matching = [LEVELS[orjson.loads(rule)["level"]] for rule in rules if _means(rule, user, path)]
    made = policy("".join(f"- {rule}\n" for rule in rules))
    assert judge(made, "GET", path, user).level == (matching[0] if matching else NONE)


def _means(rule, user, path):
    """Whether a rule alone, told as one that writes down metadata, writes it down."""
    told = {**orjson.loads(rule), "level": "Metadata"}
    return judge(policy(f"- {orjson.dumps(told).decode()}\n"), "GET", path, user).level == METADATA


def test_rules_about_others_are_not_gone_through():
    made = policy("".join(f"- {{level: Metadata, users: [u{number}]}}\n" for number in range(500)))
    calls = 0

    def note(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    info = resolve("GET", "/api/v1/nodes", Query(""))
    sys.setprofile(note)
    try:
        assert made.judge(JANE, info).level == NONE
    finally:
        sys.setprofile(None)
    assert calls < 50
