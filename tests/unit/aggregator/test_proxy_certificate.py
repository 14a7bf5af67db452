"""A renewed certificate is heard of; one that cannot be read is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.server.conftest import make_certificate

from pilothouse.aggregator.proxy_certificate import ProxyCertificate
from pilothouse.machinery.supervision import Supervisor


async def test_renewal(tmp_path: Path, supervisor: Supervisor) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    shown, second = make_certificate(tmp_path / "first"), make_certificate(tmp_path / "second")
    renewals: list[int] = []
    certificate = ProxyCertificate(str(shown[0]), str(shown[1]), lambda: renewals.append(1))
    await certificate.start(supervisor)
    await certificate.look()
    assert not renewals
    Path(shown[0]).write_text("half a certificate")
    with pytest.raises(ValueError):
        await certificate.look()
    for old, new in zip(shown, second, strict=True):
        shutil.copyfile(new, old)
    await certificate.look()
    assert renewals == [1]


async def test_files_must_be_good_at_start(tmp_path: Path, supervisor: Supervisor) -> None:
    with pytest.raises(OSError):
        await ProxyCertificate(str(tmp_path / "none"), str(tmp_path / "none"), lambda: None).start(supervisor)
