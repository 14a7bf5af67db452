"""What a container is going to do: how long it takes to start, when it is ready, and when and how it ends.

From the strongest to the weakest: annotations of the pod, rules of a stage file, what its command plainly says.

    simulation.pilothouse.dev/start-delay: 2s          image pulled and started after so long
    simulation.pilothouse.dev/ready-after: 500ms       ready so long after it started
    simulation.pilothouse.dev/run-for: 10s             ends by itself after so long; "forever" does not
    simulation.pilothouse.dev/exit-code: "1"           and says this
    simulation.pilothouse.dev/failures: "2"            so many times it ends with 1 before it behaves as told
    simulation.pilothouse.dev/fail-chance: "0.1"       each time it may end with 1 instead
    simulation.pilothouse.dev/image-error: "true"      the image is never found
    simulation.pilothouse.dev/stop-delay: 3s           how long it takes to stop when told to
    simulation.pilothouse.dev/unready: "true"          runs, and never gets ready

An annotation that ends in ``.<container>`` means that container alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from pilothouse.machinery.objects import Object

PREFIX: Final = "simulation.pilothouse.dev/"
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SLEEP: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_SHELLS: Final = frozenset(("sh", "bash", "ash", "dash"))
_MISSING_IMAGE: Final = re.compile(r"(?:^invalid\.|:(?:404|non-?existent)$)")


class BehaviourError(ValueError):
    """An annotation or a rule that cannot be read; the message says which."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The plan of one container. ``run_for`` None is for ever."""

    start_delay: float = 0.0
    ready_after: float = 0.0
    run_for: float | None = None
    exit_code: int = 0
    failures: int = 0
    fail_chance: float = 0.0
    image_error: bool = False
    stop_delay: float = 0.0
    unready: bool = False
    unhealthy_after: float | None = None
    log: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    run: bool = False

    def ending(self, restarts: int, rng: Callable[[], float]) -> tuple[float, int] | None:
        """After how long this run ends, and with which code; None if it goes on for ever."""
        if self.run:
            return None
        if restarts < self.failures or (self.fail_chance and rng() < self.fail_chance):
            return self.run_for or 0.0, 1
        return None if self.run_for is None else (self.run_for, self.exit_code)


@dataclass(frozen=True, slots=True)
class Rule:
    """Behaviour of the containers that a pattern of namespaces, names, labels and images means."""

    settings: Mapping[str, str]
    namespace: str = "*"
    pod: str = "*"
    container: str = "*"
    image: str = "*"
    labels: Mapping[str, str] | None = None

    def matches(self, pod: Object, container: Object) -> bool:
        """Whether the rule is about this container."""
        metadata = pod["metadata"]
        own = metadata.get("labels") or {}
        return (
            fnmatchcase(metadata["namespace"], self.namespace)
            and fnmatchcase(metadata["name"], self.pod)
            and fnmatchcase(container["name"], self.container)
            and fnmatchcase(container.get("image") or "", self.image)
            and all(own.get(key) == value for key, value in (self.labels or {}).items())
        )


def read_rules(document: Any) -> tuple[Rule, ...]:
    """The rules of a stage file: a list, the later ones stronger."""
    if not isinstance(document, list):
        raise BehaviourError("a stage file is a list of rules")
    return tuple(_read_rule(number, each) for number, each in enumerate(document))


def _read_rule(number: int, rule: Any) -> Rule:
    if not isinstance(rule, dict) or not isinstance(rule.get("then"), dict):
        raise BehaviourError(f"rule {number}: needs a map `then` of settings")
    when = rule.get("when") or {}
    unknown = set(when) - {"namespace", "pod", "container", "image", "labels"}
    if unknown:
        raise BehaviourError(f"rule {number}: unknown conditions: {', '.join(sorted(unknown))}")
    settings = {str(name): _text(value) for name, value in rule["then"].items()}
    _apply(Behaviour(), settings)
    return Rule(settings, **when)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def behaviour_of(pod: Object, container: Object, rules: Sequence[Rule] = ()) -> Behaviour:
    """The plan of a container. Raises BehaviourError for annotations that cannot be read."""
    behaviour = guess(pod, container)
    for rule in rules:
        if rule.matches(pod, container):
            behaviour = _apply(behaviour, rule.settings)
    return _apply(behaviour, _annotated(pod, container["name"]))


def _annotated(pod: Object, container: str) -> dict[str, str]:
    """Settings for all containers of the pod, overridden by those for this one."""
    common: dict[str, str] = {}
    own: dict[str, str] = {}
    for name, value in (pod["metadata"].get("annotations") or {}).items():
        if name.startswith(PREFIX):
            setting, _, whose = name[len(PREFIX) :].partition(".")
            if not whose:
                common[setting] = value
            elif whose == container:
                own[setting] = value
    return common | own


def _apply(behaviour: Behaviour, settings: Mapping[str, str]) -> Behaviour:
    changes = {}
    for name, text in settings.items():
        read = _SETTINGS.get(name)
        if read is None:
            raise BehaviourError(f"unknown setting {name!r}; there are: {', '.join(sorted(_SETTINGS))}")
        try:
            changes[name.replace("-", "_")] = read(text)
        except ValueError:
            raise BehaviourError(f"setting {name}: cannot read {text!r}") from None
    return replace(behaviour, **changes) if changes else behaviour


def duration(text: str) -> float:
    """Seconds, written as ``500ms``, ``2s`` or ``1m30s``."""
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _answers(text: str) -> Mapping[str, str]:
    """What commands say, as a map in JSON."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(text)
    return {str(command): str(answer) for command, answer in found.items()}


_SETTINGS: Final[dict[str, Callable[[str], Any]]] = {
    "start-delay": duration,
    "ready-after": duration,
    "run-for": lambda text: None if text == "forever" else duration(text),
    "exit-code": int,
    "failures": int,
    "fail-chance": float,
    "image-error": _flag,
    "stop-delay": duration,
    "unready": _flag,
    "unhealthy-after": duration,
    "log": str,
    "answers": _answers,
    "run": _flag,
}


def guess(pod: Object, container: Object) -> Behaviour:
    """What the command plainly says; else a server goes on for ever and a batch job ends well."""
    image_error = bool(_MISSING_IMAGE.search(container.get("image") or ""))
    command = [*(container.get("command") or ()), *(container.get("args") or ())]
    ending = _ending_of(command)
    if ending is None and not command and _is_batch(pod):
        ending = (0.0, 0)
    if ending is None:
        return Behaviour(image_error=image_error)
    return Behaviour(run_for=ending[0], exit_code=ending[1], image_error=image_error)


def _is_batch(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner["kind"] == "Job" for owner in owners)


def _ending_of(command: Sequence[str]) -> tuple[float, int] | None:
    if not command:
        return None
    base = command[0].rpartition("/")[2]
    if base in _SHELLS and len(command) > 2 and command[1].startswith("-") and command[1].endswith("c"):
        return _script_ending(command[2])
    return _statement_ending(list(command))


def _script_ending(script: str) -> tuple[float, int] | None:
    """Of a script that only sleeps, prints and exits; None for any other."""
    seconds, code = 0.0, 0
    for statement in re.split(r"&&|;|\n", script):
        words = statement.split()
        if not words:
            continue
        if words[0] == "exit":
            return seconds, int(words[1]) if len(words) > 1 and words[1].isdigit() else code
        ending = _statement_ending(words)
        if ending is None:
            return None
        seconds, code = seconds + ending[0], ending[1]
    return seconds, code


def _statement_ending(words: Sequence[str]) -> tuple[float, int] | None:
    base = words[0].rpartition("/")[2]
    if base in ("true", ":", "echo", "printf", "date", "hostname", "env"):
        return 0.0, 0
    if base == "false":
        return 0.0, 1
    if base == "sleep" and len(words) == 2:
        match = _SLEEP.fullmatch(words[1])
        if match is not None:
            unit = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}[match[2]]
            return float(match[1]) * unit, 0
    return None
