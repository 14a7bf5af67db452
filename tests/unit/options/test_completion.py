import ipaddress

import pytest

from pilothouse.machinery.gvk import GroupResource
from pilothouse.options import complete, parse, validate
from pilothouse.options.completion import host_address


def completed(*words, data_dir="/data"):
    return complete(parse([f"--data-dir={data_dir}", *words]))


def test_without_flags_everything_is_our_own_and_safe():
    options = completed()
    pki = options.derived.pki
    assert pki is not None
    assert str(pki.directory) == "/data/pki"
    assert options.secure_serving.tls_cert_file == "/data/pki/apiserver.crt"
    assert options.secure_serving.tls_private_key_file == "/data/pki/apiserver.key"
    assert options.authentication.client_ca_file == "/data/pki/ca.crt"
    assert options.authentication.service_account_key_file == ("/data/pki/sa.pub",)
    assert options.control_plane.service_account_signing_key_file == "/data/pki/sa.key"
    assert options.authentication.service_account_issuer == ("https://kubernetes.default.svc",)
    assert options.authentication.requestheader_allowed_names == ("front-proxy-client",)
    assert options.authorization.mode == ("RBAC",)
    assert options.authentication.anonymous_auth
    assert options.derived.admin_kubeconfig == "/data/admin.kubeconfig"
    assert validate(options) == []


def test_completing_twice_changes_nothing():
    options = completed()
    first = repr(options)
    assert repr(complete(options)) == first


def test_a_token_file_of_ones_own_brings_the_originals_defaults():
    options = completed("--token-auth-file=tokens.csv")
    assert options.authentication.client_ca_file == ""
    assert options.authorization.mode == ("AlwaysAllow",)
    assert not options.authentication.anonymous_auth
    assert any("AnonymousAuth is not allowed with the AlwaysAllow authorizer" in n for n in options.derived.notices)
    assert options.derived.admin_kubeconfig == ""
    # the serving certificate and the service account keys are still ours
    assert options.derived.pki is not None
    assert validate(options) == []


def test_flags_that_name_everything_leave_no_certificates_to_make():
    options = completed(
        "--tls-cert-file=s.crt",
        "--tls-private-key-file=s.key",
        "--client-ca-file=ca.crt",
        "--service-account-key-file=sa.pub",
        "--service-account-signing-key-file=sa.key",
        "--service-account-issuer=https://issuer",
        "--authorization-mode=Node,RBAC",
    )
    assert options.derived.pki is None
    assert options.authorization.mode == ("Node", "RBAC")
    assert validate(options) == []


def test_a_certificate_folder_given_is_used():
    options = completed("--cert-dir=/certs")
    assert options.secure_serving.tls_cert_file == "/certs/apiserver.crt"
    assert options.secure_serving.tls_private_key_file == "/certs/apiserver.key"


def test_authorization_of_ones_own_is_kept():
    assert completed("--authorization-mode=AlwaysDeny").authorization.mode == ("AlwaysDeny",)
    assert completed("--authorization-config=file").authorization.mode == ()


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (["--advertise-address=192.0.2.2"], "192.0.2.2"),
        (["--bind-address=192.0.2.3"], "192.0.2.3"),
        (["--advertise-address=192.0.2.2", "--bind-address=192.0.2.3"], "192.0.2.2"),
        (["--bind-address=127.0.0.1"], host_address()),
        ([], host_address()),
        (["--advertise-address=0.0.0.0"], host_address()),
    ],
)
def test_the_advertised_address(words, address):
    options = completed(*words)
    assert options.generic.advertise_address == address
    assert options.generic.external_hostname == address


def test_the_host_has_an_address():
    assert ipaddress.ip_address(host_address(4)).version == 4
    assert ipaddress.ip_address(host_address(6)).version == 6


def test_an_external_hostname_given_is_kept():
    assert completed("--external-hostname=api.example.com").generic.external_hostname == "api.example.com"


@pytest.mark.parametrize(
    ("text", "ranges", "service_ip"),
    [
        ("", ["10.0.0.0/24"], "10.0.0.1"),
        ("10.96.0.0/12", ["10.96.0.0/12"], "10.96.0.1"),
        ("10.0.3.7/16", ["10.0.0.0/16"], "10.0.0.1"),
        ("10.0.0.0/16,fd00::/108", ["10.0.0.0/16", "fd00::/108"], "10.0.0.1"),
    ],
)
def test_service_ranges(text, ranges, service_ip):
    options = completed(f"--service-cluster-ip-range={text}", "--advertise-address=192.0.2.2")
    assert [str(each) for each in options.derived.service_ranges] == ranges
    assert options.derived.service_ip == service_ip
    assert options.derived.problems == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "service-cluster-ip-range[0] is not a valid cidr"),
        ("10.0.0.0", "service-cluster-ip-range[0] is not a valid cidr"),
        ("10.0.0.0/16,y", "service-cluster-ip-range[1] is not an ip net"),
        ("10.0.0.0/30", "error determining service IP ranges for primary service cidr: the service cluster IP range "
         "must be at least 8 IP addresses"),
        ("10.0.0.0/16,10.1.0.0/16",
         "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"),
        ("10.0.0.0/16,fd00::/108,10.2.0.0/16", "--service-cluster-ip-range must not contain more than two entries"),
        ("fd00::/108", 'service IP family "fd00::/108" must match public address family "192.0.2.2"'),
    ],
)  # fmt: skip
def test_service_ranges_refused(text, problem):
    options = completed(f"--service-cluster-ip-range={text}", "--advertise-address=192.0.2.2")
    assert problem in validate(options)


def test_the_core_group_in_runtime_config_has_one_spelling():
    options = completed("--runtime-config=v1=false,batch/v1=true")
    assert options.api_enablement.runtime_config == {"/v1": "false", "batch/v1": "true"}


def test_the_old_name_of_the_webhook_backoff():
    assert completed("--audit-webhook-batch-initial-backoff=3s").audit.webhook_initial_backoff == 3.0


@pytest.mark.parametrize(
    ("words", "uncached"),
    [
        ((), {"events", "events.events.k8s.io"}),
        (("--watch-cache-sizes=events#100,pods#0",), {"events.events.k8s.io", "pods"}),
        (("--watch-cache=false",), {"events", "events.events.k8s.io", "pods", "nodes"}),
    ],
)
def test_what_is_never_read_from_the_watch_cache(words, uncached):
    reads_newest = completed(*words).etcd.reads_newest()
    asked = [GroupResource("", name) for name in ("events", "pods", "nodes")] + [
        GroupResource("events.k8s.io", "events")
    ]
    assert {str(resource) for resource in asked if reads_newest(resource)} == uncached


@pytest.mark.parametrize(
    ("prefix", "root"),
    [
        ("/registry", "/registry"),
        ("registry", "/registry"),
        ("/a/b/", "/a/b"),
        ("//a//b/../c", "/a/c"),
        ("/", ""),
        ("", ""),
    ],
)
def test_prefixes_are_clean_paths(prefix, root):
    assert completed(f"--etcd-prefix={prefix}").etcd.root == root
