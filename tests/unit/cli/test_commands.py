"""The small commands, used as people do."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from pilothouse.cli.main import _COMMANDS, main
from pilothouse.credentials.pki import ensure_pki
from pilothouse.options.server_options import declared_flags
from pilothouse.testing.in_process import InProcessServer


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(list(words), "pilothouse")
    return code, capsys.readouterr().out


@pytest.mark.parametrize("command", [name for name in _COMMANDS if name not in ("serve", "inspect", "help")])
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"], "pilothouse")
    assert ended.value.code == 0
    assert f"pilothouse {command}" in capsys.readouterr().out


def test_versions_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "version", "-o", "json")
    assert code == 0
    assert json.loads(out)["kubernetes"] == "v1.37.0"


def test_inspect_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "inspect", "-o", "json", "--controllers=-*")
    assert code == 0
    found = json.loads(out)
    assert found["filters"][0] == "answer-headers"
    assert [each["name"] for each in found["servers"]][1] == "kube-apiserver"
    assert main(["inspect", "-o", "xml"], "pilothouse") == 1


def test_status(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "status", f"--data-dir={tmp_path}")[0] == 3
    with InProcessServer(data_dir=tmp_path) as server:
        code, out = run(capsys, "status", f"--data-dir={tmp_path}", "-o", "json")
        found = json.loads(out)
        assert (code, found["ready"], found["url"]) == (0, True, server.url)
        assert found["objects"] > 10
        assert set(found["certificates"]) >= {"ca.crt", "apiserver.crt", "admin.crt"}
        code, out = run(capsys, "status", f"--data-dir={tmp_path}")
        assert code == 0
        assert "Server        ready" in out
        assert "\033" not in out
    assert "not running" in run(capsys, "status", f"--data-dir={tmp_path}")[1]


def test_a_kubeconfig_for_somebody(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path, dns_names=["localhost"], ip_addresses=[])
    words = ("kubeconfig", "--user", "alice", "--group", "dev", "--group", "ops", f"--data-dir={tmp_path}")
    code, out = run(capsys, *words)
    assert code == 0
    user = yaml.safe_load(out)["users"][0]
    assert user["name"] == "alice"
    certificate = x509.load_pem_x509_certificate(base64.b64decode(user["user"]["client-certificate-data"]))
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(pki.ca_cert.read_bytes()))
    assert certificate.subject.rfc4514_string() == "CN=alice,O=ops,O=dev"
    assert run(capsys, *words, "--output", str(tmp_path / "config"))[1] == ""
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o600
    assert run(capsys, "kubeconfig", "--user=a", f"--data-dir={tmp_path}/none")[0] == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_flags(capsys: pytest.CaptureFixture[str], shell: str, tmp_path: Path) -> None:
    code, out = run(capsys, "completion", shell)
    assert code == 0
    flags = declared_flags()
    assert all(name in out for name in (*_COMMANDS, "secure-port"))
    assert sum(name in out for name in flags) == len(flags)
    if shutil.which(shell):
        (tmp_path / "script").write_text(out)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_bash_completes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(run(capsys, "completion", "bash")[1])
    ask = (
        f"source {tmp_path}/script; COMP_WORDS=(pilothouse {{}}); COMP_CWORD={{}}; _pilothouse 2>/dev/null; "
        'echo "${{COMPREPLY[@]}}"'
    )

    def completed(words: str, position: int) -> str:
        done = subprocess.run(["bash", "-c", ask.format(words, position)], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert completed("sta", 1) == "status"
    assert completed("serve --secure-p", 2) == "--secure-port="
    assert completed("store re", 2) == "repair restore"
    assert completed("console --o", 2) == "--open"
    assert completed("completion z", 2) == "zsh"


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish_completes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(run(capsys, "completion", "fish")[1])

    def completed(words: str) -> list[str]:
        ask = f"source {tmp_path}/script; complete --do-complete '{words}'"
        done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, check=True)
        return [line.partition("\t")[0] for line in done.stdout.splitlines()]

    assert completed("pilothouse sta") == ["status"]
    assert completed("pilothouse serve --secure-p") == ["--secure-port"]
    assert completed("pilothouse store re") == ["repair", "restore"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
def test_zsh_loads_the_script(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(run(capsys, "completion", "zsh")[1])
    ask = f"autoload -U compinit && compinit -u -d {tmp_path}/dump; source {tmp_path}/script; echo $_comps[pilothouse]"
    done = subprocess.run(["zsh", "-f", "-c", ask], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("_bash_complete -F _pilothouse", "")
