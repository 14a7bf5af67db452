"""The list of flags without effect is what the source says, and the reading of the source can tell."""

import importlib.util
from pathlib import Path

import pytest

from pilothouse.options.idle_flags import IDLE_FLAGS
from pilothouse.options.server_options import declared_flags

_TOOL = Path(__file__).parents[3] / "tools" / "make_idle_flags.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_idle_flags", _TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_is_what_nothing_reads(tool):
    idle = tool.find_idle()
    assert sorted(IDLE_FLAGS) == idle, "run tools/make_idle_flags.py"
    assert tool.TARGET.read_text() == tool.render(idle)


def test_only_declared_flags_are_listed():
    assert set(declared_flags()) > IDLE_FLAGS


@pytest.mark.parametrize(
    "source",
    [
        "def f(options): return options.etcd.etcd_prefix",
        "class A:\n  def f(self): return self._options.etcd.etcd_prefix",
        "def f(options):\n  flags = options.etcd\n  return flags.etcd_prefix",
        "def f(options):\n  a, flags = 1, options.etcd\n  return flags.etcd_prefix",
        "async def f(flags: EtcdOptions): return flags.etcd_prefix",
        "class A:\n  def g(self): return self._flags.etcd_prefix\n"
        "  def __init__(self, options): self._flags = options.etcd",
        "class EtcdOptions:\n  def build(self): return self.etcd_prefix",
    ],
)
def test_a_read_makes_a_flag_act(tool, tmp_path, source):
    (tmp_path / "module.py").write_text(source)
    idle = tool.find_idle(tmp_path)
    assert "etcd-prefix" not in idle
    assert "etcd-servers" in idle


@pytest.mark.parametrize(
    "source",
    [
        "def f(other): return other.etcd_prefix",
        "def f(options): options.etcd.etcd_prefix = 1",
        "def prefix_errors(options): return options.etcd.etcd_prefix",
        "class EtcdOptions:\n  def validate(self, given): return self.etcd_prefix",
    ],
)
def test_refusing_or_setting_is_no_effect(tool, tmp_path, source):
    (tmp_path / "module.py").write_text(source)
    assert "etcd-prefix" in tool.find_idle(tmp_path)
