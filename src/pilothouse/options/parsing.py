"""The command line → ``ServerOptions``, by pflag's rules and with pflag's words for what is wrong.

``--flag value``, ``--flag=value``, ``-v 2``, ``-v=2`` and ``-v2`` are equal; an underscore in a name is a dash; a truth
flag takes its value only with ``=``; ``--`` ends the flags. An unknown flag is answered with the nearest known one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pilothouse.machinery.go_quote import quote
from pilothouse.options.declaring import Flag
from pilothouse.options.go_numbers import ValueRefused
from pilothouse.options.option_set import OptionSet, flags_of
from pilothouse.options.server_options import ServerOptions

Options = TypeVar("Options", bound=OptionSet)


class UsageError(Exception):
    """The command line cannot be read; the message is for the user."""


def parse(argv: Sequence[str], program: str = "kube-apiserver") -> ServerOptions:
    """Read the arguments after the program's name; raises ``UsageError``."""
    return parse_into(ServerOptions(), argv, program)


def parse_into(options: Options, argv: Sequence[str], program: str) -> Options:
    """The same for the options of any program, which are changed and returned."""
    _Parser(options, program).parse(argv)
    return options


class _Parser:
    def __init__(self, options: OptionSet, program: str) -> None:
        self._program = program
        self._flags = flags_of(type(options))
        self._short = {flag.short: name for name, (_, flag) in self._flags.items() if flag.short}
        self._options = options
        self._given: set[str] = set()
        self._words: list[str] = []

    def parse(self, argv: Sequence[str]) -> None:
        self._words = list(reversed(argv))
        operands: list[str] = []
        while self._words:
            word = self._words.pop()
            if word == "--":
                operands += reversed(self._words)
                break
            if word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and len(word) > 1:
                self._shorthands(word)
            else:
                operands.append(word)
        if any(operands):
            listed = " ".join(quote(operand) for operand in operands)
            raise UsageError(f"{quote(self._program)} does not take any arguments, got [{listed}]")
        self._options.given = frozenset(self._given)

    def _long(self, word: str) -> None:
        name, equals, value = word[2:].partition("=")
        if not name or name.startswith("-"):
            raise UsageError(f"bad flag syntax: {word}")
        found = self._flags.get(name.replace("_", "-"))
        if found is None:
            raise UsageError(f"unknown flag: --{name}{_suggestion(name, self._flags)}")
        flag = found[1]
        if equals:
            self._set(flag, value)
        elif flag.kind.bare is not None:
            self._set(flag, flag.kind.bare)
        elif self._words:
            self._set(flag, self._words.pop())
        else:
            raise UsageError(f"flag needs an argument: {word}")

    def _shorthands(self, word: str) -> None:
        letters = word[1:]
        while letters:
            letter, rest = letters[0], letters[1:]
            if letter not in self._short:
                raise UsageError(f"unknown shorthand flag: {_quote_letter(letter)} in -{letters}")
            flag = self._flags[self._short[letter]][1]
            if rest.startswith("="):
                return self._set(flag, rest[1:])
            if flag.kind.bare is not None:
                self._set(flag, flag.kind.bare)
                letters = rest
                continue
            if rest:
                return self._set(flag, rest)
            if not self._words:
                raise UsageError(f"flag needs an argument: {_quote_letter(letter)} in -{letters}")
            return self._set(flag, self._words.pop())
        return None

    def _set(self, flag: Flag, text: str) -> None:
        group = self._options.group(self._flags[flag.name][0])
        earlier = getattr(group, flag.attribute) if flag.name in self._given else None
        try:
            value = flag.kind.read(text, earlier)
        except ValueRefused as refusal:
            raise UsageError(f"invalid argument {quote(text)} for {quote(flag.title)} flag: {refusal}") from None
        setattr(group, flag.attribute, value)
        if flag.deprecated and flag.name not in self._given:
            self._options.notice(f"Flag --{flag.name} has been deprecated, {flag.deprecated}")
        self._given.add(flag.name)


def _quote_letter(letter: str) -> str:
    return "'" + quote(letter)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def _suggestion(name: str, flags: dict[str, tuple[str, Flag]]) -> str:
    from difflib import get_close_matches  # only a mistyped command line needs it

    visible = [known for known, (_, flag) in flags.items() if not flag.hidden]
    nearest = get_close_matches(name[:80].replace("_", "-").lower(), visible, n=1, cutoff=0.6)
    return f"\nDid you mean --{nearest[0]}?" if nearest else ""
