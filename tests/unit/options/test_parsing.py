import csv
from pathlib import Path

import pytest

from pilothouse.options import UsageError, parse, server_options
from pilothouse.options.kinds import NamedCertKey, PortRange
from pilothouse.options.server_options import declared_flags

with (Path(__file__).parent / "flags.tsv").open() as _file:
    FACTS = list(csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE))

# One acceptable text for each type of kube-apiserver's help.
EXAMPLES = {
    "": "true", "bool": "true", "int": "3", "float": "0.01", "float32": "2.5", "string": "text", "strings": "a,b",
    "stringArray": "a", "duration": "1h2m3s", "ip": "192.0.2.7", "mapStringString": "a=b", "stringToString": "a=b",
    "colonSeparatedMultimapStringString": "Gate=true", "portRange": "30000-30010", "namedCertKey": "c,k:name",
    "int32Slice": "29,23", "Level": "4", "quantity": "64Ki", "pattern=N,...": "store=3", "version[=true]": "true",
}  # fmt: skip


def value(flag, *words):
    group, declared = declared_flags()[flag]
    return getattr(parse(words).group(group), declared.attribute)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["flag"])
def test_every_flag_of_the_original_has_its_type_and_default(fact):
    _, declared = declared_flags()[fact["flag"]]
    assert (declared.kind.word or "bool") == fact["type"]
    shown = declared.kind.show(declared.default)
    if fact["default"]:
        assert shown == fact["default"]
    else:
        assert shown in ("", "0", "0s", "false")
    assert value(fact["flag"]) == declared.default


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["flag"])
def test_every_flag_of_the_original_takes_a_value(fact):
    name, text = fact["flag"], EXAMPLES[fact["type"]]
    options = parse([f"--{name}={text}"])
    assert options.given == {name}
    group, declared = declared_flags()[name]
    assert getattr(options.group(group), declared.attribute) == declared.kind.read(text, None)


def test_only_known_flags_beside_the_originals():
    extra = set(declared_flags()) - {fact["flag"] for fact in FACTS}
    assert extra == {
        "admission-plugin-module",
        "check-policy-types",
        "workers",
        "hostname-override",
        "data-dir",
        "file-check-interval",
        "write-kubeconfig",
        # the living cluster's
        "allocate-node-cidrs",
        "cluster-cidr",
        "cluster-signing-cert-file",
        "cluster-signing-duration",
        "cluster-signing-key-file",
        "console",
        "controllers",
        "horizontal-pod-autoscaler-sync-period",
        "node-cidr-mask-size",
        "node-cidr-mask-size-ipv4",
        "node-cidr-mask-size-ipv6",
        "node-monitor-grace-period",
        "node-monitor-period",
        "root-ca-file",
        "scheduler",
        "scheduler-names",
        "simulate-nodes",
        "simulated-exec-runs-locally",
        "simulated-node-template",
        "simulated-pods-run-locally",
        "simulation-stages",
        "terminated-pod-gc-threshold",
        # deprecated and hidden in kube-apiserver's help
        "apiserver-count",
        "audit-webhook-batch-initial-backoff",
        "default-watch-cache-size",
        "kubelet-port",
        "kubelet-read-only-port",
    }


@pytest.mark.parametrize(
    "words",
    [
        ["--secure-port=7443"],
        ["--secure-port", "7443"],
        ["--secure_port=7443"],
        ["--secure-port=1", "--secure_port", "7443"],
    ],
)
def test_spellings_of_a_flag(words):
    options = parse(words)
    assert options.secure_serving.secure_port == 7443
    assert options.given == {"secure-port"}


@pytest.mark.parametrize("words", [["-v=3"], ["-v", "3"], ["-v3"], ["--v=3"], ["--v", "3"]])
def test_spellings_of_a_short_flag(words):
    assert parse(words).logs.verbosity == 3


@pytest.mark.parametrize(
    ("words", "expected"), [(["--profiling"], True), (["--profiling=false"], False), (["--profiling=0"], False)]
)
def test_truth_flags(words, expected):
    assert parse(words).features.profiling is expected


def test_short_flags_may_be_joined():
    options = parse(["-hv2"])
    assert options.global_flags.help
    assert options.logs.verbosity == 2


@pytest.mark.parametrize(
    ("flag", "words", "expected"),
    [
        ("authorization-mode", ["--authorization-mode=Node,RBAC", "--authorization-mode", "Webhook"],
         ("Node", "RBAC", "Webhook")),
        ("oidc-signing-algs", ["--oidc-signing-algs=ES256"], ("ES256",)),
        ("etcd-servers", ["--etcd-servers="], ()),
        ("service-account-issuer", ["--service-account-issuer=a,b", "--service-account-issuer=c"], ("a,b", "c")),
        ("request-timeout", ["--request-timeout=1h2m3s"], 3723.0),
        ("advertise-address", ["--advertise-address= 192.0.2.2 "], "192.0.2.2"),
        ("bind-address", ["--bind-address=0:0::1"], "::1"),
        ("bind-address", ["--bind-address=::ffff:192.0.2.1"], "192.0.2.1"),
        ("bind-address", ["--bind-address="], ""),
        ("runtime-config", ["--runtime-config=api/all=true, apps/v1 = false,batch/v1", "--runtime-config=v1=true"],
         {"api/all": "true", "apps/v1": "false", "batch/v1": "", "v1": "true"}),
        ("oidc-required-claim", ["--oidc-required-claim=a=b,c=d", "--oidc-required-claim=e=f"],
         {"a": "b,c=d", "e": "f"}),
        ("allow-metric-labels", ["--allow-metric-labels=m,l=v1,v2"], {"m,l": "v1,v2"}),
        ("allow-metric-labels", ['--allow-metric-labels="m,l=v1,v2","n,l=v3"'], {"m,l": "v1,v2", "n,l": "v3"}),
        ("feature-gates", ["--feature-gates=A=true,kube:B=false", "--feature-gates=A=false"],
         {"": ("A=true", "A=false"), "kube": ("B=false",)}),
        ("service-node-port-range", ["--service-node-port-range=30000-32767"], PortRange(30000, 2768)),
        ("service-node-port-range", ["--service-node-port-range=30000+2767"], PortRange(30000, 2768)),
        ("service-node-port-range", ["--service-node-port-range=80"], PortRange(80, 1)),
        ("service-node-port-range", ["--service-node-port-range="], PortRange(0, 0)),
        ("tls-sni-cert-key", ["--tls-sni-cert-key=c,k:*.foo.com,foo.com", "--tls-sni-cert-key= d , l "],
         (NamedCertKey("c", "k", ("*.foo.com", "foo.com")), NamedCertKey("d", "l"))),
        ("tls-curve-preferences", ["--tls-curve-preferences=29,0x17"], (29, 23)),
        ("vmodule", ["--vmodule=store=3,,cache*=4"], (("store", 3), ("cache*", 4))),
        ("version", ["--version"], "true"),
        ("version", ["--version=raw"], "raw"),
        ("version", ["--version=false"], "false"),
    ],
)  # fmt: skip
def test_values(flag, words, expected):
    assert value(flag, *words) == expected


_INVALID = 'invalid argument "{text}" for "--{flag}" flag: {why}'


@pytest.mark.parametrize(
    ("flag", "text", "why"),
    [
        ("secure-port", "x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("secure-port", "99999999999999999999", 'strconv.ParseInt: parsing "99999999999999999999": value out of range'),
        ("profiling", "maybe", 'strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("goaway-chance", "much", 'strconv.ParseFloat: parsing "much": invalid syntax'),
        ("request-timeout", "10", 'time: missing unit in duration "10"'),
        ("bind-address", "localhost", 'failed to parse IP: "localhost"'),
        ("bind-address", "1.2.3.04", 'failed to parse IP: "1.2.3.04"'),
        ("service-node-port-range", "1-2+3", "unable to parse port range: 1-2+3"),
        ("service-node-port-range", "1-70000", "the port range cannot be greater than 65535: 1-70000"),
        ("service-node-port-range", "20-10", "end port cannot be less than start port: 20-10"),
        ("service-node-port-range", "a", 'strconv.Atoi: parsing "a": invalid syntax'),
        ("tls-sni-cert-key", "only", "expected comma separated certificate and key file paths"),
        ("tls-sni-cert-key", "c,k:", "empty names list is not allowed"),
        ("oidc-required-claim", "a", "malformed pair, expect string=string"),
        ("allow-metric-labels", "a", "a must be formatted as key=value"),
        ("tls-curve-preferences", "a", 'strconv.ParseInt: parsing "a": invalid syntax'),
        ("vmodule", "a", '"a" does not have the pattern=N format'),
        ("vmodule", "a=x", 'parsing verbosity in "a=x": strconv.ParseUint: parsing "x": invalid syntax'),
        ("log-text-info-buffer-size", "big",
         "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("version", "please", 'strconv.ParseBool: parsing "please": invalid syntax'),
    ],
)  # fmt: skip
def test_values_refused(flag, text, why):
    with pytest.raises(UsageError) as refusal:
        parse([f"--{flag}={text}"])
    assert str(refusal.value) == _INVALID.format(text=text, flag=flag, why=why)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--secure-prot=1"], "unknown flag: --secure-prot\nDid you mean --secure-port?"),
        (["--etcd_server"], "unknown flag: --etcd_server\nDid you mean --etcd-servers?"),
        (["--zzzzzz"], "unknown flag: --zzzzzz"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["-hxy"], "unknown shorthand flag: 'x' in -xy"),
        (["--secure-port"], "flag needs an argument: --secure-port"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (["-v=x"], 'invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax'),
        (["--=x"], "bad flag syntax: --=x"),
        (["---x"], "bad flag syntax: ---x"),
        (["a", "--profiling", "b"], '"kube-apiserver" does not take any arguments, got ["a" "b"]'),
        (["--", "--profiling"], '"kube-apiserver" does not take any arguments, got ["--profiling"]'),
    ],
)
def test_command_lines_refused(words, message):
    with pytest.raises(UsageError) as refusal:
        parse(words)
    assert str(refusal.value) == message


def test_empty_operands_are_ignored():
    assert parse(["", "--"]).given == frozenset()


def test_two_parses_share_nothing():
    parse(["--runtime-config=api/all=true"])
    assert parse([]).api_enablement.runtime_config == {}


def test_a_deprecated_flag_is_noticed_once():
    options = parse(["--kubelet-port=1", "--kubelet-port=2"])
    assert options.control_plane.kubelet_port == 2
    assert options.derived.notices == [
        "Flag --kubelet-port has been deprecated, kubelet-port is deprecated and will be removed."
    ]


def test_flags_without_effect_are_known(monkeypatch):
    monkeypatch.setattr(server_options, "IDLE_FLAGS", frozenset({"profiling", "goaway-chance", "cert-dir"}))
    options = parse(["--secure-port=1", "--goaway-chance=0.01", "--profiling"])
    assert options.idle() == ["goaway-chance", "profiling"]
