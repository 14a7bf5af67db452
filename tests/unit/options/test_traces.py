"""``--tracing-config-file``: what a file may say, and what is said where it cannot be followed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.net.dialing import Dialer
from pilothouse.options.traces import TracingConfiguration, TracingOptions, read_configuration

HEAD = "apiVersion: apiserver.config.k8s.io/{}\nkind: TracingConfiguration\n"


def written(folder: Path, text: str) -> str:
    path = folder / "tracing.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", TracingConfiguration("localhost:4317", 0)),
        (HEAD.format("v1alpha1"), TracingConfiguration("localhost:4317", 0)),
        (HEAD.format("v1beta1") + "endpoint: 10.0.0.1:99\n", TracingConfiguration("10.0.0.1:99", 0)),
        (HEAD.format("v1") + "samplingRatePerMillion: 1000000\n", TracingConfiguration("localhost:4317", 1_000_000)),
        (HEAD.format("v1") + "endpoint: unix:///run/otel.sock\n", TracingConfiguration("unix:///run/otel.sock", 0)),
    ],
)
def test_what_a_file_says(tmp_path: Path, text: str, expected: TracingConfiguration) -> None:
    assert read_configuration(written(tmp_path, text)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            HEAD.format("v1") + "foo: bar\n",
            "failed to read tracing config: unable to decode tracing configuration data: strict decoding error: "
            'unknown field "foo"',
        ),
        (
            "apiVersion: apps/v1\nkind: DaemonSet\n",
            "failed to read tracing config: unable to decode tracing configuration data: "
            'no kind "DaemonSet" is registered for version "apps/v1"',
        ),
        (
            HEAD.format("v1") + "samplingRatePerMillion: -1\n",
            "failed to validate tracing configuration: samplingRatePerMillion: Invalid value: -1: "
            "sampling rate must be positive",
        ),
        (
            HEAD.format("v1") + "samplingRatePerMillion: 1000001\n",
            "failed to validate tracing configuration: samplingRatePerMillion: Invalid value: 1000001: "
            "sampling rate per million must be less than or equal to one million",
        ),
        (
            HEAD.format("v1") + "endpoint: https://collector\n",
            'failed to validate tracing configuration: endpoint: Invalid value: "https://collector": '
            "unsupported scheme: https.  Options are none, dns, unix, or unix-abstract.  "
            "See https://github.com/grpc/grpc/blob/master/doc/naming.md",
        ),
    ],
)
def test_what_it_may_not_say(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_configuration(written(tmp_path, text))
    assert str(refused.value) == words


def test_a_field_that_stands_twice(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unable to decode tracing configuration data: "):
        read_configuration(written(tmp_path, HEAD.format("v1") + "endpoint: a:1\nendpoint: b:1\n"))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    assert TracingOptions(path).validate(set()) == [f"tracing-config-file {path} does not exist"]
    with pytest.raises(ValueError, match=f'unable to read tracing configuration from "{path}": open {path}: no such'):
        read_configuration(path)


async def test_without_the_sdk_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pilothouse.server.trace_export", None)
    options = TracingOptions(written(tmp_path, ""))
    with pytest.raises(ValueError, match=r"pip install 'pilothouse\[tracing\]'"):
        options.build(Dialer(), "me")
    assert TracingOptions("").build(Dialer(), "me") is None


def test_who_does_not_ask_for_it_does_not_pay_for_it() -> None:
    script = "import sys, pilothouse.process.run; print([name for name in sys.modules if 'opentelemetry' in name])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
