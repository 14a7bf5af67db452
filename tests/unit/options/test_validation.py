import pytest

from pilothouse.options import complete, parse, validate


def errors_of(*words):
    return validate(complete(parse(["--data-dir=/data", *words])))


CASES = [
    ("--livez-grace-period=-1s", "--livez-grace-period can not be a negative value"),
    ("--max-requests-inflight=-1", "--max-requests-inflight can not be negative value"),
    ("--max-mutating-requests-inflight=-1", "--max-mutating-requests-inflight can not be negative value"),
    ("--request-timeout=-1s", "--request-timeout can not be negative value"),
    ("--goaway-chance=0.03", "--goaway-chance can not be less than 0 or greater than 0.02"),
    ("--min-request-timeout=-1", "--min-request-timeout can not be negative value"),
    ("--storage-initialization-timeout=-1s", "--storage-initialization-timeout can not be negative value"),
    ("--shutdown-delay-duration=-1s", "--shutdown-delay-duration can not be negative value"),
    (
        "--shutdown-watch-termination-grace-period=-1s",
        "shutdown-watch-termination-grace-period, if provided, can not be a negative value",
    ),
    (
        "--emulation-forward-compatible",
        "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same as the "
        "binary version",
    ),
    ("--emulated-version=1.20", "emulation version 1.20 is not between [1.34, 1.37]"),
    ("--emulated-version=1.36.2", "patch version not allowed, got: kube=1.36.2"),
    ("--emulated-version=new", 'could not parse "new" as version'),
    ("--emulated-version=other=1.36", "component not registered: other"),
    ("--emulated-version=1.36,1.35", "duplicate version flag, kube=1.36 and kube=1.35"),
    ("--min-compatibility-version=1.33", "minCompatibilityVersion version 1.33 is not between [1.34, 1.37]"),
    ("--feature-gates=A", "missing bool value for A"),
    ("--feature-gates=A=x", 'invalid value of A=x, err: strconv.ParseBool: parsing "x": invalid syntax'),
    ("--feature-gates=other:A=true", "component not registered: other"),
    ("--feature-gates=A=true", "unrecognized feature gate: A"),
    (
        "--feature-gates=A=true,kube:B=true",
        "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
    ),
    (
        "--feature-gates=ExternalServiceAccountTokenSigner=false",
        "cannot set feature gate ExternalServiceAccountTokenSigner to false, feature is locked to true",
    ),
    (
        "--storage-backend=etcd2",
        "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'",
    ),
    (
        "--etcd-servers-overrides=x",
        "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, "
        "semicolon separated",
    ),
    (
        "--encryption-provider-config-automatic-reload",
        "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config",
    ),
    (
        "--storage-media-type=text/plain",
        '--storage-media-type "text/plain" invalid, allowed values: application/json, '
        "application/vnd.kubernetes.protobuf, application/yaml",
    ),
    ("--watch-cache-sizes=pods", "invalid value of watch cache size: pods"),
    ("--watch-cache-sizes=pods#x", "invalid size of watch cache size: pods#x"),
    ("--watch-cache-sizes=pods#-1", "watch cache size cannot be negative: pods#-1"),
    ("--secure-port=0", "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0"),
    (
        "--secure-port=70000",
        "--secure-port 70000 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
    ),
    ("--tls-cert-file=x", "--tls-cert-file and --tls-private-key-file must be specified together"),
    ("--tls-min-version=VersionTLS14", 'unknown tls version "VersionTLS14"'),
    ("--tls-cipher-suites=NULL", "Cipher suite NULL not supported or doesn't exist"),
    (
        "--oidc-client-id=x",
        "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
    ),
    ("--service-account-issuer=", "service-account-issuer should not be an empty string"),
    (
        "--service-account-issuer=https://a:x",
        "service-account-issuer \"https://a:x\" contained a ':' but was not a valid URL: "
        'parse "https://a:x": invalid port ":x" after host',
    ),
    (
        "--service-account-jwks-uri=http://x",
        "service-account-jwks-uri requires https scheme, parsed as: http://x",
    ),
    (
        "--service-account-max-token-expiration=1m",
        "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
    ),
    ("--service-account-signing-key-file=x", "service-account-issuer is a required flag"),
    (
        "--requestheader-uid-headers=X-Uid",
        "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will "
        "not work",
    ),
    ("--requestheader-group-headers=a, ", 'empty value in "requestheader-group-headers"'),
    ("--authorization-mode=Foo", 'authorization-mode "Foo" is not a valid mode'),
    ("--authorization-mode=RBAC,RBAC", 'authorization-mode ["RBAC" "RBAC"] has mode specified more than once'),
    ("--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed"),
    ("--authorization-mode=Webhook", "authorization-mode Webhook's authorization config file not passed"),
    ("--authorization-policy-file=x", "cannot specify --authorization-policy-file without mode ABAC"),
    (
        "--authorization-webhook-config-file=x",
        "cannot specify --authorization-webhook-config-file without mode Webhook",
    ),
    ("--enable-admission-plugins=Foo", 'enable-admission-plugins plugin "Foo" is unknown'),
    ("--disable-admission-plugins=Foo", 'disable-admission-plugins plugin "Foo" is unknown'),
    ("--admission-control=Foo", 'admission-control plugin "Foo" is unknown'),
    ("--runtime-config=api/all=false", "invalid runtime-config with only api/all=false"),
    ("--runtime-config=apps=true", "runtime-config invalid key apps"),
    ("--runtime-config=api/beta=maybe", "invalid value api/beta=maybe"),
    (
        "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false",
        "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with --enable-priority-and-fairness=true",
    ),
    (
        "--show-hidden-metrics-for-version=1.30",
        "metrics.showHiddenMetricsForVersion: Invalid value: \"1.30\": must be omitted or have the value '1.36'; only "
        "the previous minor version is allowed",
    ),
    ("--egress-selector-config-file=/none", "egress-selector-config-file /none does not exist"),
    ("--tracing-config-file=/none", "tracing-config-file /none does not exist"),
    ("--logging-format=xml", 'format: Invalid value: "xml": Unsupported log format'),
    ("--log-text-split-stream", "options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled"),
    (
        "--kubernetes-service-node-port=80",
        "kubernetes service node port range 30000-32767 doesn't contain 80",
    ),
    (
        "--coordinated-leadership-lease-duration=1s",
        "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline",
    ),
    (
        "--service-account-signing-endpoint=@.",
        'invalid value "@." passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid '
        "abstract socket name",
    ),
    ("--endpoint-reconciler-type=gossip", "Reconciler not implemented: gossip"),
    ("--apiserver-count=0", "--apiserver-count should be a positive number, but value '0' provided"),
    ("--data-dir=", "--data-dir must not be empty"),
]


@pytest.mark.parametrize(("flag", "error"), CASES)
def test_one_error(flag, error):
    assert error in errors_of(flag)


def test_errors_of_one_flag_are_aggregated():
    assert errors_of("--strict-transport-security-directives=a, ") == [
        "[--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, "
        "preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information, "
        "empty value in strict-transport-security-directives]"
    ]


def test_all_errors_are_reported_together():
    found = errors_of(
        "--secure-port=0", "--goaway-chance=1", "--authorization-mode=Foo", "--service-cluster-ip-range=x"
    )
    assert found == [
        "--goaway-chance can not be less than 0 or greater than 0.02",
        "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
        'authorization-mode "Foo" is not a valid mode',
        "service-cluster-ip-range[0] is not a valid cidr",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["--cors-allowed-origins=//example\\.com(:|$),^https://x$"],
        ["--strict-transport-security-directives=max-age=31536000,includeSubDomains,preload"],
        ["--emulated-version=1.36", "--emulation-forward-compatible"],
        ["--feature-gates=kube:EmptyDirVolumeMode=true", "--feature-gates=kube:HPAScaleToZero=false"],
        ["--feature-gates=LoggingAlphaOptions=true", "--log-json-split-stream"],
        ["--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        ["--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=PodSecurity"],
        ["--runtime-config=api/all=true", "--runtime-config=v1=true"],
        ["--etcd-servers=http://127.0.0.1:2379", "--etcd-servers-overrides=/events#http://e:1;http://f:2"],
        ["--audit-log-path=-", "--audit-log-mode=batch"],
    ],
)
def test_good_flags(words):
    assert errors_of(*words) == []


@pytest.mark.parametrize(
    ("origin", "why"),
    [
        ("example.com", "regular expression does not pin to start/end of host in the origin header"),
        ("^(", "error parsing"),
    ],
)
def test_cors_origins_must_be_pinned_expressions(origin, why):
    (error,) = errors_of(f"--cors-allowed-origins={origin}")
    assert error.startswith("--cors-allowed-origins has an invalid regular expression: ")
    assert why in error


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--audit-log-mode=x"], 'invalid audit log mode x, allowed modes are "batch,blocking,blocking-strict"'),
        (["--audit-log-mode=batch", "--audit-log-batch-buffer-size=0"],
         "invalid audit batch log buffer size 0, must be a positive number"),
        (["--audit-log-mode=batch", "--audit-log-batch-throttle-enable"],
         "invalid audit batch log throttle QPS 0, must be a positive number"),
        (["--audit-log-truncate-max-event-size=0"],
         "invalid audit truncate log max event size 0, must be a positive number"),
        (["--audit-log-truncate-max-batch-size=1"],
         "invalid audit truncate log max batch size 1, must be greater than max event size (102400)"),
        (["--audit-log-format=xml"], 'invalid audit log format xml, allowed formats are "legacy,json"'),
        (["--audit-log-maxage=-1"], "--audit-log-maxage -1 can't be a negative number"),
        (["--audit-log-version=v2"], 'invalid group version, allowed versions are ["audit.k8s.io/v1"]'),
    ],
)  # fmt: skip
def test_audit_flags_count_when_the_log_is_on(words, error):
    assert errors_of(*words) == []
    assert errors_of("--audit-log-path=audit.log", *words) == [error]


def test_plugins_cannot_be_on_and_off():
    assert errors_of("--enable-admission-plugins=PodSecurity", "--disable-admission-plugins=PodSecurity") == [
        "[PodSecurity] in enable-admission-plugins and disable-admission-plugins overlapped"
    ]
    assert (
        "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
        in errors_of("--admission-control=PodSecurity", "--enable-admission-plugins=PodSecurity")
    )


def test_exclusive_flags():
    assert (
        "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are "
        "defined" in errors_of("--authorization-config=x", "--authorization-mode=RBAC")
    )
    assert "authentication-config file and oidc-* flags are mutually exclusive" in errors_of(
        "--authentication-config=x", "--oidc-issuer-url=https://x"
    )
    assert any(
        error.startswith("--write-kubeconfig cannot be used with authentication flags")
        for error in errors_of("--write-kubeconfig=k", "--client-ca-file=ca.crt")
    )


def test_features_that_flags_need():
    gate = "--feature-gates=UnknownVersionInteroperabilityProxy=false"
    assert errors_of("--peer-ca-file=x") == []
    assert errors_of("--peer-ca-file=x", gate) == [
        "--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on"
    ]
    assert '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled' in errors_of(
        "--requestheader-uid-headers=X-Remote-Uid", "--feature-gates=RemoteRequestHeaderUID=false"
    )


def test_proxies_and_users_must_not_share_an_authority_by_accident(tmp_path):
    block = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
    (tmp_path / "a.crt").write_text(block)
    (tmp_path / "b.crt").write_text("# other\n" + block.replace("QUJD", "QU\nJD"))
    words = [f"--client-ca-file={tmp_path}/a.crt", f"--requestheader-client-ca-file={tmp_path}/b.crt"]
    assert any("contain overlapping certificates" in error for error in errors_of(*words))
    assert errors_of(*words, "--requestheader-allowed-names=proxy") == []


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("nope.example.com/v1=true,apps/v1=true", ["unknown api groups nope.example.com/v1"]),
        ("b.io/v1=true,a.io/v1/things=false", ["unknown api groups a.io/v1,b.io/v1"]),
        ("batch/v9=true", ["group version batch/v9 that has not been registered"]),
        ("batch/v1beta1=true,v1=true,extensions/v1beta1=true", []),
        ("apps/v1/deployments=false", []),
    ],
)
def test_versions_of_the_runtime_config_must_exist(value, errors):
    assert validate(complete(parse([f"--runtime-config={value}"]))) == errors


def test_everything_allowed_is_said_loudly():
    options = complete(parse(["--token-auth-file=/tokens.csv"]))
    assert options.authorization.mode == ("AlwaysAllow",)
    assert any("EVERY AUTHENTICATED USER MAY DO EVERYTHING" in notice for notice in options.derived.notices)
    assert complete(parse(["--token-auth-file=/tokens.csv", "--authorization-mode=RBAC"])).derived.notices == []
