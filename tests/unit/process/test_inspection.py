"""The server's description of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.cli.main import main


def test_the_server_describes_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert (
        main(["inspect", f"--data-dir={tmp_path}/data", "--cors-allowed-origins=//x$", "--workers=3"], "pilothouse")
        == 0
    )
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    start = lines.index("Filters, outermost first:")
    chain = lines[start + 1 : lines.index("", start)]
    order = ["answer-headers", "recovery", "request-info", "cors", "timeout", "authentication", "authorization"]
    assert [name for name in chain if name in order] == order
    for wanted in ("Server 1:", "Server 2:", "Server 3:", "pods/eviction", "customresourcedefinitions", "/readyz"):
        assert any(line.startswith(wanted) for line in lines), wanted
    hooks = lines[lines.index("Processes that serve: 3") + 2 :]
    assert "crd-informer-synced" in hooks
    assert "bootstrap-controller" not in hooks
    assert not (tmp_path / "data").exists()
