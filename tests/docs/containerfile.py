"""Reads a Containerfile as far as ours needs it: stages of instructions, with arguments put in their places."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

_ARGUMENT = re.compile(r"\$\{(\w+)\}")


@dataclass
class Stage:
    """What one image is made of: (instruction, words) in order."""

    base: str
    name: str = ""
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """The words of every instruction of this kind."""
        return [words for kind, words in self.steps if kind == instruction]

    def list_of(self, instruction: str) -> list[str]:
        """The last instruction of this kind, which is a list in JSON."""
        found: list[str] = json.loads(self.all(instruction)[-1])
        return found


def read_containerfile(text: str) -> list[Stage]:
    """The stages, the last of which is the image."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        instruction, _, words = line.partition(" ")
        words = _ARGUMENT.sub(lambda found: arguments[found[1]], words.strip())
        if instruction == "ARG":
            name, _, value = words.partition("=")
            arguments[name] = value
        elif instruction == "FROM":
            base, _, name = words.partition(" AS ")
            stages.append(Stage(base, name))
        else:
            stages[-1].steps.append((instruction, words))
    return stages
