"""Keeping what is served in step with the definitions there are.

Every definition goes through one queue, in order: names are settled, it is established, approved, or taken apart. Its
status is written at most once each time. As soon as its stored state says that it may be served, it is: routes,
discovery, OpenAPI and the APIService of each of its versions follow within the same step of the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from pilothouse.apiextensions.establishing import establish, set_approval, set_structure
from pilothouse.apiextensions.finalizing import RETRY_SECONDS, finalize, is_finalizing
from pilothouse.apiextensions.naming import TakenNames, accept_names
from pilothouse.apiextensions.serving.conversion_metrics import ConversionMetrics
from pilothouse.apiextensions.status_writing import StatusWriter
from pilothouse.apis.apiextensions.custom_resource_definition import definitions
from pilothouse.controllers.own_objects import existing
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import now
from pilothouse.net.dialing.egress import Egress
from pilothouse.registry.service_routing import ServiceResolver
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store
from pilothouse.server.generic import GenericAPIServer

if TYPE_CHECKING:
    from pilothouse.apiextensions.serving.conversion import Converter
    from pilothouse.apiextensions.serving.definition import ServedDefinition
    from pilothouse.apiextensions.serving.versions import CustomVersion
    from pilothouse.apiextensions.serving.webhook import ConversionWebhooks


_PUBLISHED_AT_ONCE: Final = 100
"""Group versions of one definition; more of them follow in turns with others."""
_CLOSED_GROUPS: Final = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Whoever defines what there: it is not served, and would be stored where definitions and APIServices are."""


class Audience(Protocol):
    """Who wants to know which group versions custom resources are served under."""

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        """A group version came, changed, or (None) went."""
        ...


class CustomResources:
    """All definitions, and what of them is served by ``server``."""

    def __init__(
        self,
        server: GenericAPIServer,
        store: Store,
        storage: StorageFactory,
        informers: InformerFactory,
        resolver: ServiceResolver,
        egress: Egress,
        *,
        admission: Admission | None = None,
    ) -> None:
        self._server = server
        self._store = store
        self._storage = storage
        self._admission = admission
        self._resolver, self._egress = resolver, egress
        self._webhooks: ConversionWebhooks | None = None
        self.conversion_metrics = ConversionMetrics()
        self._audience: list[Audience] = []
        self._known: dict[str, Object] = {}
        self._by_group: dict[str, set[str]] = {}
        self._served: dict[str, ServedDefinition] = {}
        self._by_version: dict[GroupVersion, dict[str, ServedDefinition]] = {}
        self._writer = StatusWriter(store)
        self.controller: Controller[str] = Controller("custom resource definitions", self.reconcile)
        self.publisher: Controller[GroupVersion] = Controller("versions of custom resources", self._publish_later)
        self.informer = informers.of("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        self.informer.add_handler(self._came, lambda old, new: self._came(new), self._went, name="custom resources")

    def tell(self, audience: Audience) -> None:
        """Tell somebody about group versions from now on."""
        self._audience.append(audience)

    async def start(self, supervisor: Supervisor) -> None:
        """Settle what is defined, and whatever changes."""
        await self.informer.wait_synced()
        self.controller.start(supervisor)
        self.publisher.start(supervisor)

    async def close(self) -> None:
        """Let conversion webhooks go."""
        if self._webhooks is not None:
            await self._webhooks.stop()

    # What is defined

    def _came(self, crd: Object) -> None:
        name = crd["metadata"]["name"]
        before = self._known.get(name)
        self._known[name] = crd
        self._by_group.setdefault(crd["spec"]["group"], set()).add(name)
        if before is not None and _names(before) != _names(crd):
            self._recheck(crd["spec"]["group"], name)
        self._serve(name, crd)
        self.controller.queue.add(name)

    def _went(self, crd: Object) -> None:
        name = crd["metadata"]["name"]
        if self._known.pop(name, None) is None:
            return
        group = crd["spec"]["group"]
        self._by_group[group].discard(name)
        if not self._by_group[group]:
            del self._by_group[group]
        self._withdraw(name)
        self._recheck(group, name)

    def _recheck(self, group: str, besides: str) -> None:
        """Names may have become free: let all others of the group try again that want some."""
        for name in self._by_group.get(group, ()):
            if name != besides and _names(self._known[name]) != self._known[name]["spec"]["names"]:
                self.controller.queue.add(name)

    async def reconcile(self, name: str) -> None:
        """Settle one definition."""
        crd = await existing(self._store, "", name)
        if crd is None:
            return
        if self._settle(crd):
            await self._writer.write(name, self._settle)
        if is_finalizing(crd) and not await finalize(crd, await self._instances(crd), self._writer):
            self.controller.queue.add_after(name, RETRY_SECONDS)

    def _settle(self, crd: Object) -> bool:
        """Bring the status up to date in place; whether anything changed."""
        at = now()
        name, group = crd["metadata"]["name"], crd["spec"]["group"]
        others = (self._known[other] for other in self._by_group.get(group, ()) if other != name)
        changed = accept_names(crd, TakenNames(others), at)
        changed |= set_approval(crd, at)
        changed |= set_structure(crd, at)
        changed |= establish(crd, at)
        return changed

    async def _instances(self, crd: Object) -> Store | None:
        served = self._served.get(crd["metadata"]["name"])
        if served is None:
            return None
        await served.compile(served.versions.storage)
        scope = served.scope(served.versions.storage)
        return None if scope is None else scope.store

    # What is served

    # What serves custom resources is imported with the first definition: a server without any starts sooner.

    def _serve(self, name: str, crd: Object) -> None:
        if not _is_servable(crd):
            self._withdraw(name)
            return
        before = self._served.get(name)
        if before is not None and before.crd["metadata"]["resourceVersion"] == crd["metadata"]["resourceVersion"]:
            return
        same = before is not None and before.is_same(crd)
        if before is not None and same and _shows(before.crd) == _shows(crd):
            return
        if before is not None and not same:
            self._storage.drop(before.key)
        from pilothouse.apiextensions.serving.definition import ServedDefinition

        converter = self._converter_for(crd)
        made = ServedDefinition(
            crd,
            self._storage,
            admission=self._admission,
            converter=converter,
            previous=before,
        )
        self._served[name] = made
        self._install(name, before, made)

    def _converter_for(self, crd: Object) -> Converter | None:
        if (crd["spec"].get("conversion") or {}).get("strategy") != "Webhook":
            return None
        if self._webhooks is None:
            from pilothouse.apiextensions.serving.webhook import ConversionWebhooks  # few definitions need it

            self._webhooks = ConversionWebhooks(self._resolver.dial, self._egress, self.conversion_metrics)
        return self._webhooks.converter_for(crd)

    def _withdraw(self, name: str) -> None:
        before = self._served.pop(name, None)
        if before is not None:
            self._install(name, before, None)
            self._storage.drop(before.key)

    def _install(self, name: str, before: ServedDefinition | None, made: ServedDefinition | None) -> None:
        touched: dict[GroupVersion, None] = {}
        if before is not None:
            for version in before.served:
                gv = GroupVersion(before.group, version)
                self._by_version[gv].pop(before.plural, None)
                touched[gv] = None
        if made is not None:
            for version in made.served:
                gv = GroupVersion(made.group, version)
                self._by_version.setdefault(gv, {})[made.plural] = made
                touched[gv] = None
        for number, gv in enumerate(touched):
            if number < _PUBLISHED_AT_ONCE:
                self._publish(gv)
            else:
                self.publisher.queue.add(gv)

    async def _publish_later(self, gv: GroupVersion) -> None:
        if gv in self._by_version:
            self._publish(gv)

    def _publish(self, gv: GroupVersion) -> None:
        from pilothouse.apiextensions.serving.versions import CustomVersion

        served = self._by_version[gv]
        version: CustomVersion | None = None
        if served:
            version = CustomVersion(gv.group, gv.version, served)
            self._server.install_version(version)
        else:
            del self._by_version[gv]
            self._server.uninstall_version(gv)
        for audience in self._audience:
            audience.version_changed(gv, version)


def _names(crd: Object) -> Object:
    found: Object = (crd.get("status") or {}).get("acceptedNames") or {}
    return found


def _is_servable(crd: Object) -> bool:
    if crd["spec"]["group"] in _CLOSED_GROUPS:
        return False
    accepted = definitions.is_true(crd, definitions.NAMES_ACCEPTED) or definitions.is_true(crd, definitions.ESTABLISHED)
    names = _names(crd)
    return accepted and all(names.get(key) for key in ("plural", "singular", "kind", "listKind"))


def _shows(crd: Object) -> tuple[bool, bool, bool]:
    """What of the status shows in how a definition is served."""
    established = definitions.is_true(crd, definitions.ESTABLISHED)
    return established, definitions.is_terminating(crd), definitions.is_true(crd, definitions.TERMINATING)
