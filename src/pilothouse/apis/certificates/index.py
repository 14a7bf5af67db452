"""The strategies of certificate kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "certificatesigningrequests": "certificate_signing_request.SigningRequestStrategy",
        "clustertrustbundles": "cluster_trust_bundle.TrustBundleStrategy",
        "podcertificaterequests": "pod_certificate_request.PodRequestStrategy",
    },
)
