"""ImagePolicyWebhook: asks one service, named in a kubeconfig, whether images may run, and remembers its answers."""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from pilothouse.admission.annotations import annotate
from pilothouse.admission.configuration import ConfigurationError
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.admission.webhooks.credentials import CredentialBook
from pilothouse.authn.webhook_calls import FIRST_DELAY, WebhookFailed, call
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery import yaml_codec
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.times import format_duration
from pilothouse.net.outgoing import OutgoingError, Tls
from pilothouse.registry.rest_client import RestClient

_PREFIX: Final = "imagepolicywebhook.image-policy.k8s.io/"
_MARK: Final = ".image-policy.k8s.io/"
_FAILED_OPEN: Final = "alpha.image-policy.k8s.io/failed-open"
_VERSION: Final = "imagepolicy.k8s.io/v1alpha1"
_CACHE_SIZE: Final = 1024
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})


class ImagePolicyWebhook(Plugin):
    """See the module's docstring."""

    name = "ImagePolicyWebhook"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods")})
    subresources = frozenset({"", "ephemeralcontainers"})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        raw = (configuration or {}).get("imagePolicy")
        if raw is None:
            raise ConfigurationError("no config specified")
        self._ttls = {
            True: _seconds(raw.get("allowTTL", 0), 300.0),
            False: _seconds(raw.get("denyTTL", 0), 30.0),
        }
        self._slower = _delay(raw.get("retryBackoff", 0)) / FIRST_DELAY
        self._opens = bool(raw.get("defaultAllow"))
        path = raw.get("kubeConfigFile") or ""
        self._credentials = CredentialBook(path)
        self._url, self._tls, self._headers = _read_kubeconfig(path, self._credentials)
        self._client = RestClient(agent="kube-apiserver-admission")
        self._answers: OrderedDict[bytes, tuple[float, dict[str, Any]]] = OrderedDict()

    async def validate(self, attributes: Attributes) -> None:
        """Ask about the images, or recall what was said."""
        pod = attributes.object or {}
        kinds = ("ephemeralContainers",) if attributes.subresource else ("containers", "initContainers")
        images = [each.get("image", "") for kind in kinds for each in (pod.get("spec") or {}).get(kind) or ()]
        annotations = (pod.get("metadata") or {}).get("annotations") or {}
        question: dict[str, Any] = {"containers": [{"image": image} for image in images]}
        relevant = {key: value for key, value in annotations.items() if _MARK in key}
        if relevant:
            question["annotations"] = relevant
        if attributes.namespace:
            question["namespace"] = attributes.namespace
        try:
            status = await self._ask(question)
        except WebhookFailed as failure:
            self._fail(attributes, pod, failure)
            return
        for key, value in (status.get("auditAnnotations") or {}).items():
            annotate(attributes.annotations, _PREFIX + key, value)
        if not status.get("allowed"):
            reason = status.get("reason")
            refused = "image policy webhook backend denied one or more images"
            why = f"{refused}: {reason}" if reason else "one or more images rejected by webhook backend"
            raise forbidden(attributes, why)

    def _fail(self, attributes: Attributes, pod: dict[str, Any], failure: WebhookFailed) -> None:
        if not self._opens:
            raise forbidden(attributes, str(failure))
        attributes.annotations[f"{_PREFIX}failed-open"] = "true"
        metadata = pod.setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _FAILED_OPEN: "true"}

    async def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        key = orjson.dumps(question, option=orjson.OPT_SORT_KEYS)
        now = self.environment.monotonic()
        known = self._answers.get(key)
        if known is not None and now < known[0]:
            self._answers.move_to_end(key)
            return known[1]
        review = {"kind": "ImageReview", "apiVersion": _VERSION, "spec": question, "status": {"allowed": False}}
        found = dict(await call(self._post, review, lambda seconds: asyncio.sleep(seconds * self._slower)))
        self._answers[key] = (now + self._ttls[bool(found.get("allowed"))], found)
        if len(self._answers) > _CACHE_SIZE:
            self._answers.popitem(last=False)
        return found

    async def _post(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            answer = await self._client.post(self._url, orjson.dumps(review), tls=self._tls, headers=self._headers)
        except OutgoingError as error:
            raise WebhookFailed(str(error), retry=True) from None
        if not 200 <= answer.status < 300:
            failed = f"Error contacting webhook: {answer.status}"
            raise WebhookFailed(failed, retry=answer.status in _RETRIED)
        try:
            value = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise WebhookFailed(str(error)) from None
        if not isinstance(value, dict):
            raise WebhookFailed("the answer is no ImageReview")
        return value

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
        self._credentials.close()


def _delay(value: int) -> float:
    """The configured seconds before the second attempt, given in thousandths: 0 for the default, -1 for none."""
    if value in (0, -1):
        return FIRST_DELAY if value == 0 else 0.0
    if not 1 <= value <= 300_000:
        raise ConfigurationError(f"valid value is between 1ns and 5m0s, got {format_duration(value * 10**6)}")
    return value / 1000


def _seconds(value: int, default: float) -> float:
    """A configured time to live: 0 for the default, -1 for none."""
    if value in (0, -1):
        return default if value == 0 else 0.0
    if not 1 <= value <= 1800:
        raise ConfigurationError(f"valid value is between 1s and 30m0s, got {format_duration(value * 10**9)}")
    return float(value)


def _read_kubeconfig(path: str, credentials: CredentialBook) -> tuple[str, Tls, dict[str, str]]:
    """URL, TLS and headers of the current context."""
    folder = Path(path).parent
    try:
        config = yaml_codec.load(Path(path).read_bytes()) or {}
    except OSError as error:
        raise ConfigurationError(f"stat {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f'error loading config file "{path}": {error}') from None
    contexts = {each.get("name"): each.get("context") or {} for each in config.get("contexts") or ()}
    clusters = {each.get("name"): each.get("cluster") or {} for each in config.get("clusters") or ()}
    context = contexts.get(config.get("current-context"), {})
    cluster = clusters.get(context.get("cluster"), {})
    authorities = base64.b64decode(cluster.get("certificate-authority-data") or "")
    if not authorities and cluster.get("certificate-authority"):
        authorities = (folder / cluster["certificate-authority"]).read_bytes()
    shown = credentials.find("")
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    server_name = cluster.get("tls-server-name") or ""
    tls = Tls(authorities, server_name, shown.cert_file, shown.key_file, insecure)
    return cluster.get("server") or "", tls, {"Content-Type": "application/json", **shown.headers}
