"""How long rules of custom resources take to compile and to evaluate, in this process."""

from __future__ import annotations

from pilothouse.machinery.metrics import Histogram, Instrument

_COMPILATION = Histogram("apiserver_cel_compilation_duration_seconds", "[BETA] Seconds to compile rules.")
_EVALUATION = Histogram("apiserver_cel_evaluation_duration_seconds", "[BETA] Seconds to evaluate rules.")
COMPILATION = _COMPILATION.labelled()
EVALUATION = _EVALUATION.labelled()


def instruments() -> tuple[Instrument, ...]:
    """All of them."""
    return _COMPILATION, _EVALUATION
