"""What the user is told at start."""

from __future__ import annotations

from pilothouse.options import complete, parse
from pilothouse.options.greeting import greeting


def test_the_address_that_is_bound_is_told() -> None:
    every = greeting(complete(parse(["--secure-port=7443"])))
    assert "Listening on  0.0.0.0:7443, every address of this machine; from here: https://127.0.0.1:7443" in every
    one = greeting(complete(parse(["--bind-address=127.0.0.1"])))
    assert "Listening on  https://127.0.0.1:6443\n" in one


def test_a_server_without_controllers_says_what_that_means() -> None:
    assert "kubectl create serviceaccount default" in greeting(complete(parse([])))
    living = parse([])
    living.living.enliven(living.given)
    assert "No controllers" not in greeting(complete(living))
