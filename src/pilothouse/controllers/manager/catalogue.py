"""The controllers, under the names that kube-controller-manager gives them.

A row names the module and the function ``start(context)`` in it, which makes the controller and starts it on the
context's supervisor; the module is imported only when its controller runs. A controller that is in nobody's way until
objects of its kind exist is on by default; ``--controllers`` chooses as kube-controller-manager's flag does:

    *                 all that are on by default
    name, -name       this one, not this one; the first mention of a name counts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pilothouse.controllers.manager.context import ControllerContext

Start = Callable[["ControllerContext"], None]
_PACKAGE: Final = "pilothouse.controllers."


@dataclass(frozen=True, slots=True)
class Row:
    """One controller."""

    name: str
    module: str
    alias: str = ""
    default: bool = True

    def load(self) -> Start:
        """What makes the controller and starts it. Imports, so it blocks: not for the event loop."""
        start: Start = import_module(_PACKAGE + self.module).start
        return start

    def start(self, context: ControllerContext) -> None:
        """Make the controller and start it."""
        self.load()(context)


CONTROLLERS: Final[tuple[Row, ...]] = (
    Row("namespace-controller", "namespace_lifecycle", alias="namespace"),
    Row("serviceaccount-controller", "service_accounts", alias="serviceaccount"),
    Row("root-ca-certificate-publisher-controller", "root_ca", alias="root-ca-cert-publisher"),
    Row("garbage-collector-controller", "garbage_collector", alias="garbagecollector"),
    Row("replicaset-controller", "replica_sets", alias="replicaset"),
    Row("replicationcontroller-controller", "replica_sets.replication", alias="replicationcontroller"),
    Row("deployment-controller", "deployments", alias="deployment"),
    Row("endpoints-controller", "endpoints.legacy", alias="endpoint"),
    Row("endpointslice-controller", "endpoints.slices", alias="endpointslice"),
    Row("endpointslice-mirroring-controller", "endpoints.mirroring", alias="endpointslicemirroring"),
    Row("horizontal-pod-autoscaler-controller", "autoscaling", alias="horizontalpodautoscaling"),
    Row("disruption-controller", "disruption_budgets", alias="disruption"),
    Row("pod-garbage-collector-controller", "pod_garbage", alias="podgc"),
    Row("clusterrole-aggregation-controller", "cluster_roles", alias="clusterrole-aggregation"),
    Row("statefulset-controller", "stateful_sets", alias="statefulset"),
    Row("daemonset-controller", "daemon_sets", alias="daemonset"),
    Row("job-controller", "jobs", alias="job"),
    Row("ttl-after-finished-controller", "ttl_after_finished", alias="ttl-after-finished"),
    Row("cronjob-controller", "cron_jobs", alias="cronjob"),
    Row("node-ipam-controller", "node_ipam", alias="nodeipam"),
    Row("node-lifecycle-controller", "node_lifecycle", alias="nodelifecycle"),
    Row("taint-eviction-controller", "taint_eviction"),
    Row("resourcequota-controller", "quotas", alias="resourcequota"),
    Row("certificatesigningrequest-signing-controller", "certificates.signer", alias="csrsigning"),
    Row("certificatesigningrequest-approving-controller", "certificates.approver", alias="csrapproving"),
    Row("certificatesigningrequest-cleaner-controller", "certificates.cleaner", alias="csrcleaner"),
    Row("podcertificaterequest-cleaner-controller", "certificates.pod_requests"),
    Row("kube-apiserver-serving-clustertrustbundle-publisher-controller", "certificates.trust_bundles"),
    Row("serviceaccount-token-controller", "tokens.service_account_tokens", alias="serviceaccount-token"),
    Row(
        "legacy-serviceaccount-token-cleaner-controller",
        "tokens.legacy_token_cleaner",
        alias="legacy-service-account-token-cleaner",
    ),
    Row("bootstrap-signer-controller", "tokens.bootstrap_signer", alias="bootstrapsigner", default=False),
    Row("token-cleaner-controller", "tokens.token_cleaner", alias="tokencleaner", default=False),
    Row("ttl-controller", "node_ttl", alias="ttl"),
    Row("service-cidr-controller", "service_cidrs"),
    Row("storageversion-garbage-collector-controller", "storage_versions", alias="storage-version-gc"),
    Row("storage-version-migrator-controller", "storage_migration", alias="svm"),
    Row("validatingadmissionpolicy-status-controller", "policy_types"),
    Row("resourceclaim-controller", "resource_claims", alias="resource-claim-controller"),
    Row("device-taint-eviction-controller", "device_taints"),
    Row("resourcepoolstatusrequest-controller", "pool_status"),
    Row("podgroup-protection-controller", "pod_group_protection"),
    Row("persistentvolume-binder-controller", "volumes.binder", alias="persistentvolume-binder"),
    Row("persistentvolume-attach-detach-controller", "volumes.attachments", alias="attachdetach"),
    Row("persistentvolume-expander-controller", "volumes.expander", alias="persistentvolume-expander"),
    Row("persistentvolumeclaim-protection-controller", "volumes.claim_protection", alias="pvc-protection"),
    Row("persistentvolume-protection-controller", "volumes.volume_protection", alias="pv-protection"),
    Row("volumeattributesclass-protection-controller", "volumes.attribute_class_protection"),
    Row("ephemeral-volume-controller", "volumes.ephemeral", alias="ephemeral-volume"),
)


class UnknownController(ValueError):
    """A name in ``--controllers`` that no controller has."""


def choose(names: Sequence[str], rows: Sequence[Row] = CONTROLLERS) -> list[Row]:
    """The controllers that a value of ``--controllers`` switches on. Raises UnknownController."""
    known = {each for row in rows for each in (row.name, row.alias) if each}
    for name in names:
        if name != "*" and name.removeprefix("-") not in known | {"*"}:
            raise UnknownController(f'"{name}" is not in the list of known controllers')
    return [row for row in rows if _is_on(row, names)]


def _is_on(row: Row, names: Sequence[str]) -> bool:
    own = {row.name, row.alias} - {""}
    for name in names:
        if name.removeprefix("-") in own:
            return not name.startswith("-")
    return "*" in names and row.default
