import os
import platform
import socket
import subprocess
import sys

import pytest

from pilothouse import __version__
from pilothouse.cli.main import main
from pilothouse.options import server_options
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.ports import free_port


def run(capsys, *words, program="pilothouse"):
    code = main(list(words), program)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("words", [["--version"], ["serve", "--version"], ["inspect", "--version=true"]])
def test_the_version_flag_speaks_as_the_original(capsys, words):
    assert run(capsys, *words) == (0, "Kubernetes v1.37.0\n", "")


def test_kube_apiserver_is_serve(capsys):
    assert run(capsys, "--version", program="kube-apiserver") == (0, "Kubernetes v1.37.0\n", "")


def test_the_version_command_names_us_too(capsys):
    code, out, _ = run(capsys, "version")
    assert code == 0
    assert out == f"Pilothouse {__version__}\nKubernetes v1.37.0\nPython {platform.python_version()}\n"


@pytest.mark.parametrize("words", [["help"], ["--help"], ["-h"], ["serve", "--help"]])
def test_help(capsys, words):
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "pilothouse [serve] [flags]" in out
    assert "Generic flags:" in out


def test_help_of_inspect(capsys):
    code, out, err = run(capsys, "inspect", "-h")
    assert (code, err) == (0, "")
    assert "Usage:\n  pilothouse inspect [flags] [-o text|json]\n\nPrints the filters, " in out
    assert "pilothouse status" not in out
    assert "Generic flags:" in out


def test_help_of_kube_apiserver(capsys):
    assert "kube-apiserver [flags]" in run(capsys, "--help", program="kube-apiserver")[1]


@pytest.mark.parametrize(
    ("words", "err"),
    [
        (["--secure-prot=1"], "Error: unknown flag: --secure-prot\nDid you mean --secure-port?\n"),
        (["serv"], 'Error: unknown command "serv" for "pilothouse"\nDid you mean serve?\n'),
        (["xyzzy"], 'Error: unknown command "xyzzy" for "pilothouse"\n'),
        (["serve", "now"], 'Error: "pilothouse serve" does not take any arguments, got ["now"]\n'),
        (["--secure-port=x"],
         'Error: invalid argument "x" for "--secure-port" flag: strconv.ParseInt: parsing "x": invalid syntax\n'),
    ],
)  # fmt: skip
def test_wrong_command_lines(capsys, words, err):
    assert run(capsys, *words) == (1, "", err)


@pytest.mark.parametrize("command", ["serve", "inspect"])
def test_all_errors_are_printed_and_the_exit_code_is_one(capsys, tmp_path, command):
    code, out, err = run(
        capsys,
        command,
        f"--data-dir={tmp_path}/data",
        "--secure-port=0",
        "--goaway-chance=1",
        "--authorization-mode=Foo",
        "--simulate-nodes=0",
    )
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "Error: --goaway-chance can not be less than 0 or greater than 0.02",
        "Error: --secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
        'Error: authorization-mode "Foo" is not a valid mode',
    ]
    assert not (tmp_path / "data").exists()


def test_flags_without_effect_get_one_warning_line(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(server_options, "IDLE_FLAGS", frozenset({"contention-profiling", "profiling", "cert-dir"}))
    idle = ["--contention-profiling", "--profiling"]
    code, _, err = run(capsys, f"--data-dir={tmp_path}/data", f"--encryption-provider-config={tmp_path}/none", *idle)
    assert code == 1
    lines = [line for line in err.splitlines() if "no effect yet" in line]
    assert len(lines) == 1
    assert lines[0].endswith("These flags are accepted but have no effect yet: " + ", ".join(idle))
    assert f"cannot start: --encryption-provider-config: cannot open {tmp_path}/none: No such file" in err


def test_inspect_shows_the_server_and_leaves_nothing_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["inspect"], "pilothouse") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Filters, outermost first:\n  answer-headers\n  recovery\n")
    servers = ("Server 1: kube-aggregator", "Server 2: kube-apiserver", "Server 3: apiextensions")
    assert all(part in shown for part in (*servers, "pods/status", "/readyz"))
    assert list(tmp_path.iterdir()) == []


def test_help_and_wrong_flags_need_nothing_of_the_server():
    code = (
        "import sys, pilothouse.cli.main;"
        "print([name for name in sys.modules if name.startswith(('pilothouse.endpoints', 'pilothouse.storage', "
        "'pilothouse.registry', 'pilothouse.controllers.runtime', 'pilothouse.apis.resources'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_a_server_imports_nothing_large_that_few_need():
    """Each of these takes a part of a megabyte, in every process."""
    large = "cryptography email html importlib.metadata importlib.readers mimetypes shutil tempfile zipfile"
    code = f"import sys, pilothouse.process.run; print(sorted(set({large.split()}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_a_folder_of_a_running_server_is_left_alone(capsys, tmp_path):
    folder = tmp_path / "data"
    with InProcessServer(data_dir=folder) as server:
        before = server.kubeconfig.read_bytes()
        code, out, err = run(capsys, f"--data-dir={folder}", "--secure-port=7443", "--simulate-nodes=0")
        assert (code, out) == (1, "")
        assert f"pid {os.getpid()}, {server.url}" in err
        assert server.kubeconfig.read_bytes() == before
        assert server.call("GET", "/readyz").status == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--token-auth-file={tmp}/none"], "--token-auth-file: cannot open {tmp}/none"),
        (["--client-ca-file={tmp}/none"], "--client-ca-file: cannot open {tmp}/none"),
        (["--authentication-config={tmp}/none"], "--authentication-config: cannot open {tmp}/none"),
        (["--audit-policy-file={tmp}/none"], "--audit-policy-file: cannot open {tmp}/none"),
        (["--tls-cert-file={tmp}/no", "--tls-private-key-file={tmp}/no"], "--tls-cert-file: cannot open {tmp}/no"),
        (
            ["--proxy-client-cert-file={tmp}/no", "--proxy-client-key-file={tmp}/no"],
            "--proxy-client-cert-file: cannot open {tmp}/no",
        ),
        (["--secure-port={taken}"], "cannot listen on 127.0.0.1:{taken}: Address already in use; stop what listens"),
    ],
)
def test_a_failed_start_says_why_in_a_line(capsys, tmp_path, words, said):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        known = {"tmp": tmp_path, "taken": taken.getsockname()[1]}
        own = [f"--data-dir={tmp_path}/data", "--bind-address=127.0.0.1", "--controllers=-*"]
        port = [] if "taken" in words[0] else [f"--secure-port={free_port()}"]
        code, out, err = run(capsys, *own, *port, *(word.format(**known) for word in words))
    assert (code, out) == (1, "")
    assert said.format(**known) in err
    assert "Traceback" not in err
