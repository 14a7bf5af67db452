import stat

import pytest
from cryptography import x509

from pilothouse.options import StartError, complete, parse, provision, server_url, validate
from pilothouse.options.provisioning import serving_names


def provisioned(tmp_path, *words):
    options = complete(parse([f"--data-dir={tmp_path}/data", *words]))
    assert validate(options) == []
    provision(options)
    return options


def test_a_first_start_makes_certificates_and_a_kubeconfig(tmp_path):
    options = provisioned(tmp_path, "--bind-address=127.0.0.1", "--secure-port=7443")
    kubeconfig = tmp_path / "data" / "admin.kubeconfig"
    assert options.derived.admin_kubeconfig == str(kubeconfig)
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    assert '"https://127.0.0.1:7443"' in kubeconfig.read_text()
    assert f"kubectl --kubeconfig {kubeconfig} get namespaces" in options.derived.greeting
    assert "https://127.0.0.1:7443" in options.derived.greeting


def test_the_kubeconfig_goes_where_it_is_wanted(tmp_path):
    provisioned(tmp_path, f"--write-kubeconfig={tmp_path}/deep/er/config")
    assert (tmp_path / "deep" / "er" / "config").exists()
    assert not (tmp_path / "data" / "admin.kubeconfig").exists()


def test_authentication_of_ones_own_writes_no_kubeconfig(tmp_path):
    options = provisioned(tmp_path, f"--token-auth-file={tmp_path}/tokens.csv")
    assert not (tmp_path / "data" / "admin.kubeconfig").exists()
    assert (tmp_path / "data" / "pki" / "apiserver.crt").exists()
    assert "kubectl --kubeconfig" not in options.derived.greeting


def test_the_serving_certificate_has_every_name(tmp_path):
    provisioned(
        tmp_path,
        "--bind-address=127.0.0.2",
        "--advertise-address=192.0.2.2",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--external-hostname=api.example.com",
    )
    certificate = x509.load_pem_x509_certificate((tmp_path / "data/pki/apiserver.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(address) for address in names.get_values_for_type(x509.IPAddress)} == {
        "127.0.0.1", "::1", "10.96.0.1", "192.0.2.2", "127.0.0.2",
    }  # fmt: skip
    assert {
        "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local", "api.example.com",
    } <= set(names.get_values_for_type(x509.DNSName))  # fmt: skip


def test_a_strange_hostname_is_left_out():
    options = complete(parse(["--external-hostname=bücher", "--data-dir=/data"]))
    assert "bücher" not in serving_names(options)[0]


def test_a_certificate_folder_is_filled_once(tmp_path):
    words = [f"--cert-dir={tmp_path}/certs"]
    provisioned(tmp_path, *words)
    first = (tmp_path / "certs" / "apiserver.crt").read_bytes()
    assert stat.S_IMODE((tmp_path / "certs" / "apiserver.key").stat().st_mode) == 0o600
    provisioned(tmp_path, *words, "--external-hostname=other.example.com")
    assert (tmp_path / "certs" / "apiserver.crt").read_bytes() == first


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "data").write_text("a file")
    options = complete(parse([f"--data-dir={tmp_path}/data"]))
    with pytest.raises(StartError, match="cannot prepare certificates"):
        provision(options)


@pytest.mark.parametrize(
    ("bind", "url"),
    [("0.0.0.0", "https://127.0.0.1:6443"), ("::", "https://127.0.0.1:6443"), ("::1", "https://[::1]:6443"),
     ("192.0.2.2", "https://192.0.2.2:6443")],
)  # fmt: skip
def test_where_a_local_client_reaches_the_server(bind, url):
    assert server_url(complete(parse([f"--bind-address={bind}"]))) == url
