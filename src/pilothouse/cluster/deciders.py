"""What decides about requests: who asks, whether they may, and what objects must be like."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.admission.versions import Definitions, ServedVersions
from pilothouse.authn.authenticator import TokenAuthenticator
from pilothouse.authn.review_verbs import identity_review_verbs, token_request_verbs
from pilothouse.authn.stored_objects import StoredObjects
from pilothouse.authz.rbac.escalation import GROUP as RBAC_GROUP
from pilothouse.authz.rbac.guard import EscalationGuard
from pilothouse.authz.resource_claims import guard_devices
from pilothouse.authz.review_verbs import access_review_verbs
from pilothouse.cluster.authorization_sources import AuthorizationSources
from pilothouse.cluster.shared_parts import SharedParts
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.installer import OwnVerbs
from pilothouse.machinery.closing import Closing
from pilothouse.machinery.supervision import Supervisor
from pilothouse.options import ServerOptions
from pilothouse.registry.storage import StorageFactory


class Deciders:
    """Authentication, authorization and admission of one cluster, each built by its group of flags."""

    def __init__(
        self,
        options: ServerOptions,
        storage: StorageFactory,
        informers: InformerFactory,
        definitions: Definitions,
        supervisor: Supervisor,
        shared: SharedParts,
        own_tokens: Sequence[TokenAuthenticator] = (),
    ) -> None:
        flags, own_flags = options.authentication, options.control_plane
        self._gates = storage.gates
        self.issuing = flags.build_issuing(
            StoredObjects(storage),
            supervisor,
            own_flags.service_account_signing_key_file,
            own_flags.service_account_signing_endpoint,
        )
        self.authentication = flags.build(
            storage, shared.outgoing, self.issuing, supervisor, shared.identity, options.given, own_tokens
        )
        self.authorization = options.authorization.build(shared.outgoing, shared.identity)
        self._sources = AuthorizationSources(self.authorization, informers)
        self.enabled = options.api_enablement.enabled_versions(storage.gates, options.generic.emulation())
        """The group versions that flags and gates switch on."""
        self.served = ServedVersions({each.group_version for each in self.enabled}, definitions)
        self.admission = options.admission.build(
            storage,
            self.authorization.authorizer,
            self.served,
            options.own.admission_plugin_modules,
            routes_services=own_flags.enable_aggregator_routing,
            egress=shared.egress,
        )
        shared.metrics.register(
            self.authentication.metrics,
            self.issuing,
            self.authorization.metrics,
            self.authorization.graph,
            self.admission.metrics,
        )

    def own_verbs(self) -> OwnVerbs:
        """The verbs by which they can be asked: reviews, and requests for tokens."""
        return {
            **identity_review_verbs(self.authentication),
            **access_review_verbs(self.authorization.authorizer),
            **token_request_verbs(self.issuing),
        }

    def guards(self) -> dict[str, Admission]:
        """By group, the admission that asks for rights beyond that to write an object."""
        authorizer = self.authorization.authorizer
        return {
            RBAC_GROUP: EscalationGuard(self.admission, authorizer, self.authorization.index),
            **guard_devices(self.admission, authorizer, self._gates),
        }

    async def start(self, informers: InformerFactory) -> None:
        """Return when all that decides about everybody is known; what is for nodes follows. Raises SignerUnusable."""
        await self.issuing.start()
        informers.start()
        await self._sources.wait_synced()

    def poll_files(self) -> None:
        """Re-read files that changed. Not to be called on the event loop."""
        self.authentication.poll()
        self.issuing.poll()
        self.authorization.poll()

    def close_with(self, closing: Closing) -> None:
        """Have them closed, admission first."""
        closing.add("token issuing", self.issuing.close)
        closing.add("authentication", self.authentication.close)
        closing.add("admission", self.admission.close)
