"""Starts the jobs of cron jobs, deletes old ones, and keeps the status.

ended jobs beyond the history ─► deleted
ended jobs in status.active   ─► taken out; lastSuccessfulTime
newest time that is due       ─► a job, unless too late, forbidden (one runs), or served already
next time                     ─► the key comes back then
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from pilothouse.apis.batch.cron_job.schedule import Schedule, ScheduleError, parse_schedule
from pilothouse.apis.batch.cron_job.time_zones import find_time_zone
from pilothouse.controllers.cron_jobs import jobs as listed
from pilothouse.controllers.cron_jobs.missed import InvalidSchedule, missed_times, seconds_to_next
from pilothouse.controllers.jobs.conditions import is_finished, true_condition
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller, NotYet
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID, Key, key_of, working_copy
from pilothouse.controllers.runtime.own_writes import OwnWrites
from pilothouse.controllers.runtime.owners import controller_of, is_controlled_by
from pilothouse.controllers.runtime.pod_control import is_namespace_terminating
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import Instant, format_time, parse_time
from pilothouse.machinery.workers import weighed

_NAME: Final = "cronjob-controller"


class CronJobController:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        client = context.client(_NAME)
        self._clock = context.clock
        self._cron_jobs = context.informers.of("batch", "v1", "cronjobs")
        self._jobs = context.informers.of("batch", "v1", "jobs")
        self._jobs.add_index(BY_CONTROLLER_UID)
        self._cron_job_client, self._job_client = client.of("batch", "v1", "cronjobs"), client.of("batch", "v1", "jobs")
        self._events = context.recorder(_NAME, _NAME)
        self._writes: OwnWrites[Key] = OwnWrites()
        self._controller: Controller[Key] = Controller(
            _NAME, self._reconcile, workers=5, wait_for=[self._cron_jobs, self._jobs], clock=context.clock
        )
        add = self._controller.queue.add
        self._cron_jobs.add_handler(
            lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), lambda obj: add(key_of(obj)), name=_NAME
        )
        self._jobs.add_handler(self._job_seen, self._job_changed, self._job_seen, name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to reconcile."""
        self._controller.start(supervisor)

    # Following

    def _job_seen(self, job: Object) -> None:
        reference = controller_of(job)
        if reference is not None and reference["kind"] == "CronJob":
            self._controller.queue.add((job["metadata"]["namespace"], reference["name"]))

    def _job_changed(self, old: Object, new: Object) -> None:
        if controller_of(old) != controller_of(new):
            self._job_seen(old)
        self._job_seen(new)

    # Reconciling

    async def _reconcile(self, key: Key) -> float | None:
        known = self._cron_jobs.lister.get(*key)
        if known is None:
            self._writes.forget(key)
            return None
        if self._writes.are_unseen(key):
            return None
        cron_job = working_copy(known)
        jobs = self._jobs.lister.by_index(BY_CONTROLLER_UID, cron_job["metadata"]["uid"])
        again, failure = None, None
        try:
            for job in listed.jobs_beyond_history(cron_job, jobs):
                await self._delete(cron_job, job)
            await self._follow_jobs(cron_job, jobs)
            again = await self._start_due(cron_job)
        except (errors.StatusError, NotYet) as error:
            failure = error
        # Whatever was found out is kept, also if starting a job failed.
        if (cron_job.get("status") or {}) != (known.get("status") or {}):
            written = await self._cron_job_client.update_status(cron_job)
            self._writes.wrote(key, self._cron_jobs, written)
        if failure is not None:
            raise failure
        return again

    async def _delete(self, cron_job: Object, job: Object) -> bool:
        """Delete a job with its pods; whether it goes."""
        try:
            await self._job_client.delete(*key_of(job), uid=job["metadata"]["uid"], propagation="Background")
        except errors.NotFound:
            pass
        except errors.StatusError as error:
            self._events.event(cron_job, "Warning", "FailedDelete", f"Deleted job: {error.message}")
            return False
        listed.drop_active(cron_job, job["metadata"]["uid"])
        self._events.event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")
        return True

    async def _follow_jobs(self, cron_job: Object, jobs: Sequence[Object]) -> None:
        """Bring the list of jobs that run, and the time of the last success, up to date."""
        for job in jobs:
            name, uid = job["metadata"]["name"], job["metadata"]["uid"]
            known = listed.is_active(cron_job, uid)
            if is_finished(job):
                if known:
                    listed.drop_active(cron_job, uid)
                    how = "Complete" if true_condition(job, "Complete") else "Failed"
                    text = f"Saw completed job: {name}, condition: {how}"
                    self._events.event(cron_job, "Normal", "SawCompletedJob", text)
                _note_success(cron_job, job)
            elif not known:
                text = f"Saw a job that the controller did not create or forgot: {name}"
                self._events.event(cron_job, "Warning", "UnexpectedJob", text)
        there = {job["metadata"]["uid"] for job in jobs}
        for reference in listed.active_of(cron_job):
            if reference.get("uid") not in there and not await self._exists(reference):
                listed.drop_active(cron_job, reference["uid"])
                text = f"Active job went missing: {reference['name']}"
                self._events.event(cron_job, "Normal", "MissingJob", text)

    async def _exists(self, reference: Object) -> bool:
        """Ask the server: our view of jobs may be older than the status that names one."""
        try:
            await self._job_client.get(reference["namespace"], reference["name"])
        except errors.NotFound:
            return False
        return True

    async def _start_due(self, cron_job: Object) -> float | None:
        """Start what is due; how long until the next time."""
        schedule = await self._schedule_of(cron_job)
        if schedule is None:
            return None
        now = self._clock.now()
        try:
            missed = missed_times(cron_job, schedule, now, within_deadline=True)
        except InvalidSchedule as error:
            text = f"invalid schedule: {cron_job['spec']['schedule']} : {error}"
            self._events.event(cron_job, "Warning", "InvalidSchedule", text)
            return None
        if missed.latest is not None:
            if missed.too_many:
                text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                self._events.event(cron_job, "Warning", "TooManyMissedTimes", text)
            if self._may_start(cron_job, missed.latest, now):
                await self._replace_active(cron_job)
                if not await self._start(cron_job, missed.latest):
                    return None
        return seconds_to_next(cron_job, schedule, now)

    async def _schedule_of(self, cron_job: Object) -> Schedule | None:
        """The schedule; None if nothing is to be started."""
        spec = cron_job["spec"]
        if cron_job["metadata"].get("deletionTimestamp"):
            return None
        text, zone = spec["schedule"], spec.get("timeZone")
        if zone is not None:
            try:
                find_time_zone(zone)
            except ValueError as error:
                message = f"invalid timeZone: {quote(zone)}: {error}"
                self._events.event(cron_job, "Warning", "UnknownTimeZone", message)
                return None
        if spec.get("suspend"):
            return None
        if "TZ" in text:
            message = f"CRON_TZ or TZ used in schedule {quote(text)} is not officially supported, see "
            message += "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            self._events.event(cron_job, "Warning", "UnsupportedSchedule", message)
        try:
            spelled = text if "TZ" in text or zone is None else f"TZ={zone} {text}"
            return await weighed(len(spelled), parse_schedule, spelled)
        except ScheduleError as error:
            message = f"unparseable schedule: {quote(text)} : {error}"
            self._events.event(cron_job, "Warning", "UnparseableSchedule", message)
            return None

    def _may_start(self, cron_job: Object, scheduled: int, now: Instant) -> bool:
        deadline = cron_job["spec"].get("startingDeadlineSeconds")
        if deadline is not None and Instant(scheduled + deadline) < now:
            when = datetime.fromtimestamp(scheduled, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._events.event(cron_job, "Warning", "MissSchedule", f"Missed scheduled time to start a job: {when}")
            return False
        name, active = listed.job_name(cron_job, scheduled), listed.active_of(cron_job)
        last = (cron_job.get("status") or {}).get("lastScheduleTime")
        if any(each["name"] == name for each in active) or last == format_time(Instant(scheduled)):
            return False
        if cron_job["spec"].get("concurrencyPolicy") == "Forbid" and active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._events.event(cron_job, "Normal", "JobAlreadyActive", text)
            return False
        return True

    async def _replace_active(self, cron_job: Object) -> None:
        """Make room where a new job takes the place of those that run."""
        if cron_job["spec"].get("concurrencyPolicy") != "Replace":
            return
        for reference in listed.active_of(cron_job):
            try:
                job = await self._job_client.get(reference["namespace"], reference["name"])
            except errors.StatusError as error:
                self._events.event(cron_job, "Warning", "FailedGet", f"Get job: {error.message}")
                raise
            if not await self._delete(cron_job, job):
                raise NotYet(f"could not replace job {reference['namespace']}/{reference['name']}")

    async def _start(self, cron_job: Object, scheduled: int) -> bool:
        """Create the job of a time, or find that it was; whether it is ours."""
        made = listed.make_job(cron_job, scheduled)
        try:
            job = await self._job_client.create(made)
            self._events.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        except errors.AlreadyExists:
            job = await self._job_client.get(*key_of(made))
            if not is_controlled_by(job, cron_job) or listed.is_active(cron_job, job["metadata"]["uid"]):
                return False
        except errors.StatusError as error:
            if not is_namespace_terminating(error):
                self._events.event(cron_job, "Warning", "FailedCreate", f"Error creating job: {error.message}")
            raise
        listed.add_active(cron_job, job)
        cron_job["status"]["lastScheduleTime"] = format_time(Instant(scheduled))
        return True


def _note_success(cron_job: Object, job: Object) -> None:
    if true_condition(job, "Complete") is None:
        return
    ended, status = (job.get("status") or {}).get("completionTime"), cron_job.setdefault("status", {})
    last = status.get("lastSuccessfulTime")
    if ended and (last is None or parse_time(ended) > parse_time(last)):
        status["lastSuccessfulTime"] = ended
