"""Which versions are served, and the server's description of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.app.chain import enabled_versions
from pilothouse.cli.main import main


@pytest.mark.parametrize(
    ("config", "on", "off"),
    [
        ({}, {"v1", "apps/v1"}, {"resource.k8s.io/v1beta1", "internal.apiserver.k8s.io/v1alpha1"}),
        ({"resource.k8s.io/v1beta1": "true"}, {"resource.k8s.io/v1beta1"}, {"resource.k8s.io/v1alpha3"}),
        ({"batch/v1": "false"}, {"apps/v1"}, {"batch/v1"}),
        ({"api/alpha": "true"}, {"resource.k8s.io/v1alpha3", "apps/v1"}, {"resource.k8s.io/v1beta1"}),
        ({"api/all": "false", "v1": "true"}, {"v1", "apiregistration.k8s.io/v1"}, {"apps/v1"}),
        ({"api/all": "true", "api/beta": "false"}, {"resource.k8s.io/v1alpha3"}, {"resource.k8s.io/v1beta1"}),
    ],
)
def test_versions(config: dict[str, str], on: set[str], off: set[str]) -> None:
    served = {str(version.group_version) for version in enabled_versions(config)}
    assert on <= served
    assert not off & served


def test_the_server_describes_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["inspect", f"--data-dir={tmp_path}/data", "--cors-allowed-origins=//x$"], "pilothouse") == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    start = lines.index("Filters, outermost first:")
    chain = lines[start + 1 : lines.index("", start)]
    order = ["audit-id", "recovery", "request-info", "cors", "timeout", "authentication", "authorization"]
    assert [name for name in chain if name in order] == order
    for wanted in ("Server 1:", "Server 2:", "Server 3:", "pods/eviction", "customresourcedefinitions", "/readyz"):
        assert any(line.startswith(wanted) for line in lines), wanted
    assert not (tmp_path / "data").exists()
