import stat

import yaml
from kubernetes import client, config

from pilothouse.credentials.kubeconfig import write_kubeconfig
from pilothouse.credentials.pki import ensure_pki


def write(tmp_path, url="https://127.0.0.1:6443"):
    pki = ensure_pki(tmp_path, dns_names=["localhost"], ip_addresses=["127.0.0.1"])
    path = tmp_path / "admin.kubeconfig"
    write_kubeconfig(path, url, pki.ca_cert, pki.admin_cert, pki.admin_key)
    return path, pki


def test_the_python_client_loads_it(tmp_path):
    path, pki = write(tmp_path)
    configuration = client.Configuration()
    config.load_kube_config(str(path), client_configuration=configuration)
    assert configuration.host == "https://127.0.0.1:6443"
    assert configuration.verify_ssl
    for loaded, source in (
        (configuration.ssl_ca_cert, pki.ca_cert),
        (configuration.cert_file, pki.admin_cert),
        (configuration.key_file, pki.admin_key),
    ):
        with open(loaded, "rb") as file:
            assert file.read() == source.read_bytes()


def test_the_context_is_named_and_current(tmp_path):
    path, _ = write(tmp_path)
    contexts, active = config.list_kube_config_contexts(str(path))
    assert [context["name"] for context in contexts] == ["pilothouse"]
    assert active["name"] == "pilothouse"


def test_only_its_owner_can_read_it(tmp_path):
    path, _ = write(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    write(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_is_written_again_only_when_something_changed(tmp_path):
    path, _ = write(tmp_path)
    first = path.stat().st_mtime_ns
    write(tmp_path)
    assert path.stat().st_mtime_ns == first
    write(tmp_path, "https://[::1]:7443")
    assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"] == "https://[::1]:7443"
