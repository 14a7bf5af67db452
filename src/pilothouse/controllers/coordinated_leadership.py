"""Coordinated leader election: the server decides who leads, among those who say which versions they run.

Components do not race for a Lease: each keeps a LeaseCandidate that names the Lease it wants, its versions and a
strategy. With ``OldestEmulationVersion`` the one leads that emulates the oldest version, so that during an upgrade
nobody acts by rules that others do not know yet. An election, seen in the objects alone:

    Lease     missing, expired, without a holder, or held by another than the best candidate
    pinged    candidates that were not heard of for five seconds get a pingTime, and answer with a renewTime
    elected   the best of those that answered within five seconds: holder of a Lease that nobody holds, else its
              preferredHolder, for which the present holder makes room

One of several servers does this: the one that has the Lease ``leader-election-controller``. Candidates that were not
heard of for half an hour are removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.apis.coordination.lease_candidate import NO_VERSION, Version, parse_version
from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.controller import Controller, Periodic
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import Instant, format_micro_time, parse_micro_time, parse_time

logger = logging.getLogger(__name__)

NAME: Final = "leader-election-controller"
OLDEST: Final = "OldestEmulationVersion"
_GROUP: Final = "coordination.k8s.io"
_AGAIN_SECONDS: Final = 5.0
_ELECTION_SECONDS: Final = 5.0
_LEASE_SECONDS: Final = 5
_CANDIDATE_SECONDS: Final = 1800.0


class NoElection(Exception):
    """Why nobody can be elected."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done next in the election of one Lease."""

    pinged: tuple[Object, ...] = ()
    """Candidates that are to say whether they are there."""
    strategy: str = ""
    """By what somebody is elected; empty while it is not time to."""
    elected: str = ""
    """Who; nobody where another than this server decides by the strategy."""
    again: bool = True
    """Whether to look again after a while, and not only when something changes."""


def next_step(lease: Object | None, candidates: Sequence[Object], now: Instant) -> Step:
    """The step that follows from a Lease and the candidates for it that are alive."""
    if not candidates:
        return Step(again=False)
    if not _needs_election(lease, candidates, now):
        return Step()
    pinged = tuple(each for each in candidates if _is_to_be_pinged(each, now))
    if pinged or any(_is_awaited(each, now) for each in candidates):
        return Step(pinged)
    present = [each for each in candidates if _is_within(each, "renewTime", _ELECTION_SECONDS, now)]
    if not present:
        raise NoElection("no available candidates")
    strategy = pick_strategy(present)
    if strategy != OLDEST:
        return Step(strategy=strategy)
    best = pick_leader(present)
    if best is None:
        raise NoElection("no candidate has versions that can be compared")
    return Step(strategy=strategy, elected=best["metadata"]["name"])


def _needs_election(lease: Object | None, candidates: Sequence[Object], now: Instant) -> bool:
    if lease is None or is_expired(lease, now) or not lease["spec"].get("holderIdentity"):
        return True
    # All candidates are asked now and then, long before they would be taken for gone.
    if not all(_is_within(each, "renewTime", _CANDIDATE_SECONDS / 2, now) for each in candidates):
        return True
    if pick_strategy(candidates) != OLDEST:
        return False
    best = pick_leader(candidates)
    return best is not None and best["metadata"]["name"] != lease["spec"]["holderIdentity"]


def _is_to_be_pinged(candidate: Object, now: Instant) -> bool:
    """Not heard of lately, and not asked either, or it answered when it was."""
    if _is_within(candidate, "renewTime", _ELECTION_SECONDS, now):
        return False
    pinged = _moment(candidate, "pingTime")
    return pinged is None or (now.since(pinged) > _ELECTION_SECONDS and not _owes_answer(candidate))


def _is_awaited(candidate: Object, now: Instant) -> bool:
    """Asked a moment ago, without an answer so far."""
    return _is_within(candidate, "pingTime", _ELECTION_SECONDS, now) and _owes_answer(candidate)


def _owes_answer(candidate: Object) -> bool:
    pinged, renewed = _moment(candidate, "pingTime"), _moment(candidate, "renewTime")
    return pinged is not None and (renewed is None or renewed < pinged)


def _is_within(candidate: Object, field: str, seconds: float, now: Instant) -> bool:
    found = _moment(candidate, field)
    return found is not None and now.since(found) < seconds


def _moment(obj: Object, field: str) -> Instant | None:
    text = obj["spec"].get(field)
    return parse_micro_time(text) if text else None


def is_expired(lease: Object, now: Instant) -> bool:
    """Whether nobody has renewed a Lease in time."""
    renewed, seconds = _moment(lease, "renewTime"), lease["spec"].get("leaseDurationSeconds")
    return renewed is None or seconds is None or now.since(renewed) > seconds


def is_gone(candidate: Object, now: Instant) -> bool:
    """Whether a candidate was not heard of for so long that it does not count."""
    return not _is_within(candidate, "renewTime", _CANDIDATE_SECONDS, now)


def pick_strategy(candidates: Sequence[Object]) -> str:
    """The strategy of those with the newest binaries, who must agree."""
    newest = max(_version(each, "binaryVersion") for each in candidates)
    leading = [each for each in candidates if _version(each, "binaryVersion") == newest]
    first = leading[0]
    for each in leading[1:]:
        one, other = first["spec"].get("strategy", ""), each["spec"].get("strategy", "")
        if one != other:
            names = f'"{first["metadata"]["name"]}", "{each["metadata"]["name"]}"'
            raise NoElection(
                f"candidates {names} at same binary version but received differing strategies {one}, {other}"
            )
    strategy: str = first["spec"].get("strategy", "")
    return strategy


def pick_leader(candidates: Sequence[Object]) -> Object | None:
    """The one that emulates the oldest version; of those the oldest binary, then the oldest object."""
    able = [each for each in candidates if all(_parsed(each, field) for field in ("emulationVersion", "binaryVersion"))]
    return min(able, key=_rank, default=None)


def _rank(candidate: Object) -> tuple[Version, Version, Instant]:
    created = parse_time(candidate["metadata"]["creationTimestamp"])
    return _version(candidate, "emulationVersion"), _version(candidate, "binaryVersion"), created


def _parsed(candidate: Object, field: str) -> Version | None:
    return parse_version(candidate["spec"].get(field, ""))


def _version(candidate: Object, field: str) -> Version:
    return _parsed(candidate, field) or NO_VERSION


class CoordinatedLeadership:
    """Elects leaders while it runs. Keys are namespaces and names of Leases."""

    def __init__(self, client: Client, informers: InformerFactory, clock: Clock) -> None:
        self._leases = informers.of(_GROUP, "v1", "leases")
        self._candidates = informers.of(_GROUP, "v1beta1", "leasecandidates")
        self._lease_client = client.of(_GROUP, "v1", "leases")
        self._candidate_client = client.of(_GROUP, "v1beta1", "leasecandidates")
        self._clock = clock
        self._controller: Controller[Key] = Controller(
            NAME, self._reconcile, wait_for=[self._leases, self._candidates], clock=clock
        )
        self._removing = Periodic("lease candidate removal", self._remove_gone, _CANDIDATE_SECONDS, clock=clock)
        self._leases.add_handler(
            self._lease_seen, lambda _, lease: self._lease_seen(lease), self._lease_seen, name=NAME
        )
        self._candidates.add_handler(self._seen, lambda _, candidate: self._seen(candidate), self._seen, name=NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Elect from now on."""
        for each in self._candidates.lister.list():
            self._seen(each)
        self._controller.start(supervisor)
        self._removing.start(supervisor)

    def _lease_seen(self, lease: Object) -> None:
        self._controller.queue.add(key_of(lease))

    def _seen(self, candidate: Object) -> None:
        """One that was just asked changes nothing: its answer will."""
        if not _owes_answer(candidate):
            self._controller.queue.add((candidate["metadata"]["namespace"], candidate["spec"].get("leaseName", "")))

    async def _reconcile(self, key: Key) -> float | None:
        namespace, name = key
        now = self._clock.now()
        named = [each for each in self._candidates.lister.list(namespace) if each["spec"].get("leaseName") == name]
        alive = sorted(
            (each for each in named if not is_gone(each, now)), key=lambda each: str(each["metadata"]["name"])
        )
        try:
            step = next_step(self._leases.lister.get(namespace, name), alive, now)
        except NoElection as error:
            logger.warning("lease %s/%s: %s", namespace, name, error)
            return _AGAIN_SECONDS
        await asyncio.gather(*(self._ping(each, now) for each in step.pinged))
        if step.strategy:
            await self._elect(namespace, name, step)
        return _AGAIN_SECONDS if step.again else None

    async def _ping(self, candidate: Object, now: Instant) -> None:
        asked = {**candidate, "spec": {**candidate["spec"], "pingTime": format_micro_time(now)}}
        try:
            await self._candidate_client.update(asked)
        except (errors.Conflict, errors.NotFound):
            return  # it has spoken meanwhile, or is no more

    async def _elect(self, namespace: str, name: str, step: Step) -> None:
        spec: dict[str, Any] = {"strategy": step.strategy, **self._term()}
        if step.elected:
            spec["holderIdentity"] = step.elected
        try:
            await self._lease_client.create({"metadata": {"namespace": namespace, "name": name}, "spec": spec})
            logger.info("lease %s/%s is given to %s", namespace, name, step.elected or "nobody")
        except errors.AlreadyExists:
            found = await self._lease_client.get(namespace, name)
            changed = {**found, "spec": self._handed_over(found, step)}
            if changed != found:
                await self._lease_client.update(changed)
                logger.info("lease %s/%s is to go to %s", namespace, name, step.elected or "nobody")

    def _handed_over(self, lease: Object, step: Step) -> dict[str, Any]:
        """The spec of a Lease that somebody else is to have: at once if nobody has it, else when they let it go."""
        spec: dict[str, Any] = {**lease["spec"], "strategy": step.strategy}
        holder = spec.get("holderIdentity") or ""
        if not step.elected or step.elected == holder:
            return spec
        if holder and not is_expired(lease, self._clock.now()):
            return {**spec, "preferredHolder": step.elected}
        spec = {name: value for name, value in spec.items() if name not in ("preferredHolder", "acquireTime")}
        return {**spec, "holderIdentity": step.elected, **self._term()}

    def _term(self) -> dict[str, Any]:
        return {"leaseDurationSeconds": _LEASE_SECONDS, "renewTime": format_micro_time(self._clock.now())}

    async def _remove_gone(self) -> None:
        await self._candidates.wait_synced()
        for each in self._candidates.lister.list():
            if not is_gone(each, self._clock.now()):
                continue
            namespace, name = each["metadata"]["namespace"], each["metadata"]["name"]
            try:
                found = await self._candidate_client.get(namespace, name)
                if is_gone(found, self._clock.now()):
                    await self._candidate_client.delete(namespace, name)
            except errors.NotFound:
                continue
