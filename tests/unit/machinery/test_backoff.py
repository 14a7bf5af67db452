from pilothouse.machinery.backoff import Backoff


def test_waits_double_up_to_the_limit_for_each_key_alone() -> None:
    backoff: Backoff[str] = Backoff(0.5, 3.0)
    assert [backoff.next("a") for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert backoff.next("b") == 0.5
    assert backoff.failures("a") == 5


def test_a_success_starts_again() -> None:
    backoff: Backoff[str] = Backoff(0.5, 3.0)
    backoff.next("a")
    backoff.next("a")
    backoff.forget("a")
    backoff.forget("never seen")
    assert backoff.next("a") == 0.5


def test_endless_failures_do_not_overflow() -> None:
    backoff: Backoff[str] = Backoff(1.0, 60.0)
    assert {backoff.next("a") for _ in range(5000)} <= {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0}
