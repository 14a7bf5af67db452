"""The strategies of certificates.k8s.io."""

from __future__ import annotations

from pilothouse.apis.certificates.pod_request import PodRequestStrategy
from pilothouse.apis.certificates.signing_request import SigningRequestStrategy
from pilothouse.apis.certificates.trust_bundle import TrustBundleStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "certificatesigningrequests": SigningRequestStrategy,
    "clustertrustbundles": TrustBundleStrategy,
    "podcertificaterequests": PodRequestStrategy,
}
