"""The strategies of certificate kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.certificates.certificate_signing_request import SigningRequestStrategy
from pilothouse.apis.certificates.cluster_trust_bundle import TrustBundleStrategy
from pilothouse.apis.certificates.pod_certificate_request import PodRequestStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "certificatesigningrequests": SigningRequestStrategy,
    "clustertrustbundles": TrustBundleStrategy,
    "podcertificaterequests": PodRequestStrategy,
}
