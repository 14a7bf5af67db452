"""Moves deployments to the replica set of their template, within the limits of their strategy.

    paused              scale only
    rollback asked for  the template of an earlier revision comes back
    replicas changed    scale only, all active replica sets in proportion
    RollingUpdate       new one up, old ones down, step by step as pods become available
    Recreate            old ones to zero; when their pods have gone, the new one to full size

Each round does one step and writes the status; what the step changes brings the deployment back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pilothouse.controllers.deployments import revisions, rollback, scaling, status
from pilothouse.controllers.deployments.limits import is_rolling, replicas_of
from pilothouse.controllers.deployments.scaling import Sizes
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller, NotYet
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID, SELECTOR, Key, key_of, read_selector, working_copy
from pilothouse.controllers.runtime.owners import ControllerRefClaim, controller_of, owners_to_wake, recheck_owner
from pilothouse.controllers.runtime.pod_control import is_namespace_terminating
from pilothouse.controllers.runtime.pods import condition_of, is_terminal
from pilothouse.machinery import errors, labels
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

_NAME: Final = "deployment-controller"


class DeploymentController:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        client = context.client(_NAME)
        self._clock = context.clock
        self._deployments = context.informers.of("apps", "v1", "deployments")
        self._deployments.add_reading(SELECTOR, read_selector)
        self._replica_sets = context.informers.of("apps", "v1", "replicasets")
        self._replica_sets.add_index(BY_CONTROLLER_UID)
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(BY_CONTROLLER_UID)
        self._deployment_client = client.of("apps", "v1", "deployments")
        self._replica_set_client = client.of("apps", "v1", "replicasets")
        self._events = context.recorder(_NAME, _NAME)
        self._controller: Controller[Key] = Controller(
            _NAME,
            self._reconcile,
            workers=5,
            wait_for=[self._deployments, self._replica_sets, self._pods],
            clock=context.clock,
        )
        add = self._controller.queue.add
        self._deployments.add_handler(lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), name=_NAME)
        self._replica_sets.add_handler(self._seen, self._changed, self._seen, name=_NAME)
        self._pods.add_handler(on_delete=self._pod_gone, name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to reconcile."""
        self._controller.start(supervisor)

    # Following

    def _seen(self, replica_set: Object) -> None:
        for key in owners_to_wake(replica_set, "Deployment", self._deployments.lister):
            self._controller.queue.add(key)

    def _changed(self, old: Object, new: Object) -> None:
        if controller_of(old) != controller_of(new):
            self._seen(old)
        self._seen(new)

    def _pod_gone(self, pod: Object) -> None:
        """A deployment that recreates waits for the last of its old pods."""
        reference = controller_of(pod)
        if reference is None or reference["kind"] != "ReplicaSet":
            return
        replica_set = self._replica_sets.lister.get(pod["metadata"]["namespace"], reference["name"])
        if replica_set is not None:
            self._seen(replica_set)

    # Reconciling

    async def _reconcile(self, key: Key) -> float | None:
        known = self._deployments.lister.get(*key)
        if known is None:
            return None
        deployment = working_copy(known)
        selector = self._deployments.lister.selector_of(known)
        if selector.empty:
            text = "This deployment is selecting all pods. A non-empty selector is required."
            self._events.event(deployment, "Warning", "SelectingAll", text)
            return None
        owned = await self._claim(deployment, selector)
        if deployment["metadata"].get("deletionTimestamp"):
            await self._write_plain_status(deployment, owned)
            return None
        if await self._check_paused(deployment):
            return None
        if not deployment["spec"].get("paused") and rollback.wanted_revision(deployment) is not None:
            await self._roll_back(deployment, owned)
            return None
        new = revisions.find_new(deployment, owned)
        old = [each for each in owned if each is not new]
        if deployment["spec"].get("paused") or scaling.is_scaling(deployment, owned):
            await self._scale(deployment, new, old)
            return None
        if is_rolling(deployment):
            return await self._roll(deployment, new, old)
        return await self._recreate(deployment, new, old)

    async def _claim(self, deployment: Object, selector: labels.Selector) -> list[Object]:
        metadata = deployment["metadata"]
        owned = self._replica_sets.lister.by_index(BY_CONTROLLER_UID, metadata["uid"])
        orphans = [
            each
            for each in self._replica_sets.lister.list(metadata["namespace"], selector)
            if controller_of(each) is None
        ]
        claim = ControllerRefClaim(
            self._replica_set_client,
            deployment,
            "Deployment",
            "apps/v1",
            selector,
            recheck_owner(self._deployment_client, deployment),
        )
        return await claim.claim_all([*owned, *orphans])

    async def _check_paused(self, deployment: Object) -> bool:
        """Say that the deployment was paused or resumed, so that its deadline begins anew; whether that was due."""
        current = condition_of(deployment, status.PROGRESSING)
        if not status.has_deadline(deployment) or (current or {}).get("reason") == status.TIMED_OUT:
            return False
        paused, known = bool(deployment["spec"].get("paused")), (current or {}).get("reason") == status.PAUSED
        if paused == known:
            return False
        reason, text = (
            (status.PAUSED, "Deployment is paused") if paused else ("DeploymentResumed", "Deployment is resumed")
        )
        made = status.condition(status.PROGRESSING, "Unknown", reason, text, self._clock.now())
        status.set_condition(deployment.setdefault("status", {}), made)
        await self._deployment_client.update_status(deployment)
        return True

    async def _roll_back(self, deployment: Object, owned: list[Object]) -> None:
        """Write the deployment as it was before; that brings it back here."""
        made = rollback.roll_back(deployment, owned)
        await self._deployment_client.update(made.deployment)
        self._events.event(deployment, made.type, made.reason, made.message)

    async def _scale(self, deployment: Object, new: Object | None, old: list[Object]) -> None:
        if new is not None:
            new = await self._sync_revision(deployment, new, old)
        scaled = await self._resize(deployment, scaling.scale(deployment, new, old))
        if deployment["spec"].get("paused"):
            await self._clean_up(deployment, old)
        every = [scaled.get(each["metadata"]["uid"], each) for each in [*old, *([] if new is None else [new])]]
        await self._write_plain_status(deployment, every)

    async def _roll(self, deployment: Object, new: Object | None, old: list[Object]) -> float | None:
        new = await self._ensure_new(deployment, new, old)
        every = [*old, new]
        size = scaling.new_size(deployment, every, replicas_of(new))
        if replicas_of(new) > replicas_of(deployment):
            size = replicas_of(deployment)
        scaled = await self._resize(deployment, [(new, size)] if size != replicas_of(new) else [])
        if not scaled:
            scaled = await self._resize(deployment, scaling.shrink_old(deployment, new, old))
        if not scaled and status.is_complete(deployment, deployment.get("status") or {}):
            await self._clean_up(deployment, old)
        return await self._write_rollout_status(deployment, every, new, scaled)

    async def _recreate(self, deployment: Object, new: Object | None, old: list[Object]) -> float | None:
        if new is not None:
            new = await self._sync_revision(deployment, new, old)
        shrunk = await self._resize(deployment, [(each, 0) for each in scaling.active(old)])
        every = [*old, *([] if new is None else [new])]
        if shrunk or self._have_pods(old):
            return await self._write_rollout_status(deployment, every, new, shrunk)
        new = await self._ensure_new(deployment, new, old)
        wanted = replicas_of(deployment)
        scaled = await self._resize(deployment, [(new, wanted)] if replicas_of(new) != wanted else [])
        if status.is_complete(deployment, deployment.get("status") or {}):
            await self._clean_up(deployment, old)
        return await self._write_rollout_status(deployment, [*old, new], new, scaled)

    def _have_pods(self, replica_sets: Sequence[Object]) -> bool:
        return any(
            not is_terminal(pod)
            for each in replica_sets
            for pod in self._pods.lister.by_index(BY_CONTROLLER_UID, each["metadata"]["uid"])
        )

    # Replica sets

    async def _ensure_new(self, deployment: Object, new: Object | None, old: Sequence[Object]) -> Object:
        if new is not None:
            return await self._sync_revision(deployment, new, old)
        revision = revisions.next_revision(old)
        size = scaling.new_size(deployment, old, 0)
        made = revisions.make_new(deployment, revision, size)
        created = await self._create(deployment, made)
        if size:
            name = created["metadata"]["name"]
            text = f"Scaled up replica set {name} from 0 to {size}"
            self._events.event(deployment, "Normal", "ScalingReplicaSet", text)
        text = f'Created new replica set "{created["metadata"]["name"]}"'
        await self._tell_new(deployment, revision, "NewReplicaSetCreated", text)
        return created

    async def _create(self, deployment: Object, made: Object) -> Object:
        try:
            return await self._replica_set_client.create(made)
        except errors.AlreadyExists:
            return await self._resolve_collision(deployment, made)
        except errors.StatusError as error:
            if not is_namespace_terminating(error):
                text = f'Failed to create new replica set "{made["metadata"]["name"]}": {error.message}'
                self._events.event(deployment, "Warning", "ReplicaSetCreateError", text)
                if status.has_deadline(deployment):
                    made_condition = status.condition(
                        status.PROGRESSING, "False", "ReplicaSetCreateError", text, self._clock.now()
                    )
                    status.set_condition(deployment.setdefault("status", {}), made_condition)
                    await self._deployment_client.update_status(deployment)
            raise

    async def _resolve_collision(self, deployment: Object, made: Object) -> Object:
        """Something has the name already: it is ours and our informer was late, or another name is needed."""
        metadata = made["metadata"]
        found = await self._replica_set_client.get(metadata["namespace"], metadata["name"])
        reference = controller_of(found)
        ours = reference is not None and reference["uid"] == deployment["metadata"]["uid"]
        if ours and revisions.same_template(found["spec"]["template"], deployment["spec"]["template"]):
            return found
        own = deployment.setdefault("status", {})
        own["collisionCount"] = (own.get("collisionCount") or 0) + 1
        await self._deployment_client.update_status(deployment)
        raise NotYet(f"replica set {metadata['name']} exists already; trying another name")

    async def _sync_revision(self, deployment: Object, new: Object, old: Sequence[Object]) -> Object:
        """Bring the new replica set's annotations up to date, and the deployment's revision."""
        changed = working_copy(new)
        annotated = revisions.annotate(deployment, changed, revisions.next_revision(old))
        seconds = deployment["spec"].get("minReadySeconds") or 0
        if annotated or (changed["spec"].get("minReadySeconds") or 0) != seconds:
            changed["spec"]["minReadySeconds"] = seconds
            return await self._replica_set_client.update(changed)
        text = f'Found new replica set "{new["metadata"]["name"]}"'
        await self._tell_new(deployment, revisions.revision_of(new), "FoundNewReplicaSet", text, only_first=True)
        return new

    async def _tell_new(
        self, deployment: Object, revision: int, reason: str, text: str, *, only_first: bool = False
    ) -> None:
        """Write the revision, and that there is a new replica set, into the deployment."""
        known = condition_of(deployment, status.PROGRESSING)
        changed = revisions.revision_of(deployment) != revision
        if changed:
            deployment["metadata"].setdefault("annotations", {})[revisions.REVISION] = str(revision)
        if status.has_deadline(deployment) and not (only_first and known is not None):
            made = status.condition(status.PROGRESSING, "True", reason, text, self._clock.now())
            status.set_condition(deployment.setdefault("status", {}), made)
            changed = True
        if changed:
            written = await self._deployment_client.update_status(deployment)
            deployment.clear()
            deployment.update(written)

    async def _resize(self, deployment: Object, sizes: Sizes) -> dict[str, Object]:
        """Give replica sets their sizes; those that were changed, by uid."""
        changed: dict[str, Object] = {}
        annotations = revisions.size_annotations(deployment)
        for replica_set, size in sizes:
            before = replicas_of(replica_set)
            known = replica_set["metadata"].get("annotations") or {}
            if size == before and all(known.get(name) == value for name, value in annotations.items()):
                continue
            resized = working_copy(replica_set)
            resized["spec"]["replicas"] = size
            resized["metadata"].setdefault("annotations", {}).update(annotations)
            written = await self._replica_set_client.update(resized)
            changed[written["metadata"]["uid"]] = written
            if size != before:
                way = "up" if size > before else "down"
                text = f"Scaled {way} replica set {written['metadata']['name']} from {before} to {size}"
                self._events.event(deployment, "Normal", "ScalingReplicaSet", text)
        return changed

    async def _clean_up(self, deployment: Object, old: Sequence[Object]) -> None:
        for each in revisions.to_clean_up(deployment, old):
            metadata = each["metadata"]
            try:
                await self._replica_set_client.delete(metadata["namespace"], metadata["name"], uid=metadata["uid"])
            except errors.NotFound:
                continue

    # Status

    async def _write_plain_status(self, deployment: Object, every: Sequence[Object]) -> None:
        new = revisions.find_new(deployment, every)
        await self._write(deployment, status.calculate(deployment, every, new, self._clock.now()))

    async def _write_rollout_status(
        self, deployment: Object, every: Sequence[Object], new: Object | None, scaled: dict[str, Object]
    ) -> float | None:
        every = [scaled.get(each["metadata"]["uid"], each) for each in every]
        if new is not None:
            new = scaled.get(new["metadata"]["uid"], new)
        now = self._clock.now()
        made = status.rollout_status(deployment, every, new, now)
        await self._write(deployment, made)
        return status.seconds_to_deadline({**deployment, "status": made}, made, now)

    async def _write(self, deployment: Object, made: Object) -> None:
        if (deployment.get("status") or {}) == made:
            return
        try:
            await self._deployment_client.update_status({**deployment, "status": made})
        except errors.NotFound:
            return
