"""An environment declares what expressions may use; it compiles them into programs.

    environment = Environment({"self": STRING}, base_libraries())
    program = environment.compile("self.size() < 10")
    program.evaluate({"self": "abc"})

Environments are cheap to extend: declarations of libraries are gathered once and shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pilothouse.cel.call_estimates import SizeOfPath
from pilothouse.cel.checker import check
from pilothouse.cel.cost_estimation import Cost, estimate
from pilothouse.cel.declarations import Function, Library, Structs, StructType, TypeProvider
from pilothouse.cel.issues import CompileError, Source
from pilothouse.cel.literal_checks import check_literals
from pilothouse.cel.macros import Macros
from pilothouse.cel.nodes import Node
from pilothouse.cel.parser import parse
from pilothouse.cel.planning import InstantiationError, Planner
from pilothouse.cel.stack import is_deep, room_for
from pilothouse.cel.steps import Run, Tracker
from pilothouse.cel.types import Type
from pilothouse.cel.values import CostLimitExceeded, EvaluationError
from pilothouse.machinery.workers import PATIENCE

PER_CALL_LIMIT = 1_000_000
_NO_STRUCTS = Structs({})


class Result(NamedTuple):
    """What an evaluation gave and what it cost."""

    value: Any
    cost: int


class _Gathered(NamedTuple):
    functions: dict[str, Function]
    macros: Macros
    types: dict[str, Type]


@lru_cache(maxsize=32)
def _gather(libraries: tuple[Library, ...]) -> _Gathered:
    functions: dict[str, Function] = {}
    macros: Macros = {}
    types: dict[str, Type] = {}
    for library in libraries:
        for function in library.functions:
            known = functions.get(function.name)
            functions[function.name] = known.merged(function) if known else function
        macros.update(library.macros)
        types.update((kind.name, kind) for kind in library.types)
    return _Gathered(functions, macros, types)


_COST_OF_A_LETTER: Final = 16
"""A list of numbers of one digit takes 8 microseconds for each to compile, in units of what evaluation costs."""


class Environment:
    """Variables, functions, macros and types that expressions may use."""

    def __init__(
        self, variables: Mapping[str, Type], libraries: Iterable[Library], structs: TypeProvider = _NO_STRUCTS
    ) -> None:
        self.variables = variables
        self.libraries = tuple(libraries)
        self.structs = structs
        gathered = _gather(self.libraries)
        self.functions = gathered.functions
        self._macros = gathered.macros
        self._types = gathered.types

    def extend(self, variables: Mapping[str, Type], structs: TypeProvider | None = None) -> Environment:
        return Environment({**self.variables, **variables}, self.libraries, structs or self.structs)

    def find_struct(self, name: str) -> StructType | None:
        return self.structs.find(name)

    def find_type(self, name: str) -> Type | None:
        """Return the type that a name denotes, if it denotes one: message types of libraries cannot be named."""
        found = self._types.get(name)
        if found is not None and found.kind != "struct":
            return found
        struct = self.structs.find(name)
        return struct.type if struct is not None else None

    def compile(self, text: str) -> Program:
        """Parse, check and plan an expression; CompileError tells what is wrong with it."""
        PATIENCE.spend(len(text) * _COST_OF_A_LETTER)
        source = Source(text)
        with room_for(text):
            return self._compile(source)

    def _compile(self, source: Source) -> Program:
        root = parse(source, self._macros)
        errs, names = check(root, self)
        if not errs:
            errs = check_literals(root)
        if errs:
            raise CompileError(source, [source.issue(offset, message) for offset, message in errs])
        return Program(self, source.text, root, names)


class Program:
    """A compiled expression. Planning waits for the first evaluation or `plan()`."""

    __slots__ = ("_cost", "_deep", "_room", "_run", "_size", "environment", "names", "root", "text", "variables")

    def __init__(self, environment: Environment, text: str, root: Node, names: set[str]) -> None:
        self.environment = environment
        self.text = text
        self.root = root
        self.names = names
        self.variables = tuple(name for name in environment.variables if name in names)
        self._deep, self._room = is_deep(text), room_for(text)
        self._run: Run | None = None
        self._cost = 0
        self._size = 0

    @property
    def type(self) -> Type:
        return self.root.type

    def estimate(self, sizes: SizeOfPath) -> Cost:
        """Return the least and the most that evaluation may cost, given the sizes of values by their paths."""
        with self._room:
            return estimate(self.root, sizes)

    def plan(self) -> None:
        """Make the program ready to run; InstantiationError if a constant part of it cannot be computed."""
        planner = Planner(self.environment, self.variables)
        with self._room:
            step = planner.plan(self.root)
        self._cost, self._size = step.cost, planner.size
        self._run = step.run

    def evaluate(self, bindings: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> Result:
        """Return value and cost; EvaluationError if evaluation fails, CostLimitExceeded if it costs too much."""
        tracker = Tracker(limit)
        return Result(self.run(bindings, tracker), tracker.cost)

    def run(self, bindings: Mapping[str, Any], tracker: Tracker) -> Any:
        """Return the value, counting on a given tracker, which tells the cost also if evaluation fails."""
        if self._run is None:
            try:
                self.plan()
            except InstantiationError as error:
                raise EvaluationError(str(error)) from None
        run = self._run
        assert run is not None
        frame: list[Any] = [None] * self._size
        frame[0] = tracker
        for slot, name in enumerate(self.variables, 1):
            try:
                frame[slot] = bindings[name]
            except KeyError:
                raise EvaluationError(f"no such attribute(s): {name}") from None
        tracker.cost += self._cost
        try:
            if self._deep:
                with self._room:
                    value = run(frame)
            else:
                value = run(frame)
        except (TypeError, AttributeError, KeyError, IndexError) as error:
            # Only a value that contradicts its declared type leads here.
            raise EvaluationError("no such overload") from error
        except RecursionError as error:
            raise CostLimitExceeded from error
        if tracker.cost > tracker.limit:
            raise CostLimitExceeded
        if PATIENCE.left is not None:
            PATIENCE.spend(tracker.cost)
        return value
