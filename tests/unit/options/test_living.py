from __future__ import annotations

from dataclasses import replace

import pytest

from pilothouse.controllers.manager.context import ManagerSettings
from pilothouse.options import complete, parse, validate


def enlivened(*words: str):
    options = parse(list(words))
    options.living.enliven(options.given)
    return complete(options)


@pytest.mark.parametrize(
    ("words", "controllers", "scheduler", "nodes"),
    [
        ([], ("*",), True, 1),
        (["--controllers=-*"], ("-*",), False, 0),
        (["--controllers=*,-deployment-controller"], ("*", "-deployment-controller"), True, 1),
        (["--simulate-nodes=0"], ("*",), True, 0),
        (["--controllers=-*", "--simulate-nodes=5"], ("-*",), False, 5),
        (["--scheduler=false"], ("*",), False, 1),
    ],
)
def test_what_is_on(words, controllers, scheduler, nodes) -> None:
    living = enlivened(*words).living
    assert (living.controllers, living.scheduler, living.simulate_nodes) == (controllers, scheduler, nodes)


@pytest.mark.parametrize(
    ("words", "on"), [([], True), (["--controllers=-*"], False), (["--controllers=-*", "--console"], True)]
)
def test_the_console_belongs_to_what_is_alive(words, on) -> None:
    assert enlivened(*words).living.console is on
    assert parse(words).living.console is ("--console" in words)


def test_a_bare_server_has_none_of_it() -> None:
    options = complete(parse([]))
    assert options.living.rows() == [] and not options.living.scheduler and not options.living.simulate_nodes
    assert options.authorization.mode == ("RBAC",)
    assert enlivened().authorization.mode == ("Node", "RBAC")


def test_what_controllers_are_told() -> None:
    words = (
        "--node-cidr-mask-size-ipv4=25",
        "--node-cidr-mask-size-ipv6=72",
        "--node-monitor-grace-period=20s",
        "--cluster-signing-duration=1h",
    )
    settings = enlivened(*words).living.manager_settings((), "")
    assert (settings.node_mask, settings.node_mask_ipv6) == (25, 72)
    assert (settings.node_monitor_grace, settings.signing_seconds) == (20.0, 3600.0)
    made = enlivened().living.manager_settings((), "")
    assert replace(made, root_ca_file="", signing_cert_file="", signing_key_file="") == ManagerSettings()


def test_nodes_need_not_get_ranges() -> None:
    names = [row.name for row in enlivened("--allocate-node-cidrs=false").living.rows()]
    assert "node-ipam-controller" not in names
    assert "node-ipam-controller" in [row.name for row in enlivened().living.rows()]


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--controllers=*,nonsense", "is not in the list of known controllers"),
        ("--simulate-nodes=-1", "--simulate-nodes must not be negative"),
        ("--cluster-cidr=nowhere", "--cluster-cidr"),
        ("--node-monitor-period=0s", "--node-monitor-period must be greater than zero"),
        ("--simulation-stages=/does/not/exist", "--simulation-stages"),
        ("--simulated-node-template=/does/not/exist", "--simulated-node-template"),
        ("--authorization-mode=RBAC", "--simulate-nodes needs Node in --authorization-mode"),
    ],
)
def test_mistakes_are_told(flag: str, text: str) -> None:
    assert any(text in error for error in validate(enlivened(flag)))
