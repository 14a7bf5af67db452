"""Asking one webhook: the review there, the verdict back, within its time."""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from pilothouse.admission.environment import Environment
from pilothouse.admission.webhooks.credentials import CredentialBook
from pilothouse.admission.webhooks.failures import CallFailed, dry_run_unsupported
from pilothouse.admission.webhooks.hooks import Client, Hook
from pilothouse.admission.webhooks.matching import Invocation
from pilothouse.admission.webhooks.reviews import (
    InvalidResponse,
    Verdict,
    choose_version,
    make_request,
    make_review,
    read_verdict,
)
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import go_json, large_json
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.spans import Span, propagation_headers
from pilothouse.machinery.weights import weight_of
from pilothouse.machinery.workers import weighed
from pilothouse.net.outgoing import Answer, OutgoingError, Tls, plain_path
from pilothouse.registry.rest_client import RestClient
from pilothouse.registry.service_routing import ServiceResolver

_AGENT: Final = "kube-apiserver-admission"
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, */*"}
_DEFAULT_SECONDS: Final = 30
_SHOWN: Final = 2048
_LONGEST: Final = 8 * 1024 * 1024
"""How long an answer may be: a patch that replaces the largest object fits several times."""
_SERVER_MESSAGES: Final = {
    409: "the server reported a conflict",
    404: "the server could not find the requested resource",
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    405: "the server does not allow this method on the requested resource",
    422: "the server rejected our request due to an error in our request",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
    429: "the server has received too many requests and has asked us to try again later",
}


class HookCaller:
    """Calls webhooks over pools that all of them share."""

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        resolver = ServiceResolver(environment.storage, by_endpoints=environment.routes_services)
        self._credentials = CredentialBook.configured(configuration)
        self._to_services = RestClient(resolver.dial, agent=_AGENT, dialer=environment.egress.cluster)
        self._to_urls = RestClient(agent=_AGENT, dialer=environment.egress.control_plane)

    async def ask(
        self, invocation: Invocation, attributes: Attributes, obj: Any, old: Any, *, mutating: bool
    ) -> Verdict:
        """The verdict of a webhook; raises CallFailed, or the refusal of a dry run."""
        hook = invocation.hook
        _check_dry_run(hook, attributes)
        version = choose_version(hook.versions)
        if not version:
            why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise CallFailed(hook.name, f"could not create admission objects: {why}", 400)
        uid = str(uuid.uuid4())
        body = await weighed(attributes.weight, _encode, version, uid, attributes, invocation, obj, old)
        fields = {
            "configuration": hook.configuration,
            "webhook": hook.name,
            "resource": _resource(attributes),
            "subresource": attributes.subresource,
            "operation": attributes.operation,
            "UID": uid,
        }
        with Span("Call mutating webhook" if mutating else "Call validating webhook", fields) as span:
            answer = await self._call(hook, body)
            span.step("Request completed")
        try:
            return await weighed(weight_of(answer.body), _read, version, uid, answer, mutating)
        except OutgoingError as error:
            raise CallFailed(hook.name, f"failed to call webhook: {error}") from None
        except InvalidResponse as error:
            raise CallFailed(hook.name, f"received invalid webhook response: {error}") from None

    async def close(self) -> None:
        """Close all connections."""
        await self._to_services.close()
        await self._to_urls.close()
        self._credentials.close()

    async def _call(self, hook: Hook, body: bytes) -> Answer:
        seconds = hook.seconds if hook.seconds is not None else _DEFAULT_SECONDS
        url, target, server_name = _address(hook.client)
        if not url:
            why = "webhook configuration must have either service or URL"
            raise CallFailed(hook.name, f"could not get REST client: {why}", 500)
        shown = self._credentials.find(target)
        tls = Tls(hook.client.authorities, server_name, shown.cert_file, shown.key_file)
        client = self._to_services if hook.client.service else self._to_urls
        try:
            return await client.post(
                f"{url}?timeout={seconds}s",
                body,
                tls=tls,
                headers={**_HEADERS, **propagation_headers(), **shown.headers},
                seconds=seconds,
                limit=_LONGEST,
            )
        except OutgoingError as error:
            raise CallFailed(hook.name, f"failed to call webhook: {error}") from None


def _encode(version: str, uid: str, attributes: Attributes, invocation: Invocation, obj: Any, old: Any) -> bytes:
    return large_json.dumps(make_review(version, make_request(uid, attributes, invocation, obj, old)))


def _read(version: str, uid: str, answer: Answer, mutating: bool) -> Verdict:
    return read_verdict(version, uid, decode_answer(answer), weight=weight_of(answer.body), mutating=mutating)


def _resource(attributes: Attributes) -> str:
    resource = attributes.resource
    return f"{resource.group}/{resource.version}, Resource={resource.resource}"


def _check_dry_run(hook: Hook, attributes: Attributes) -> None:
    if not attributes.dry_run:
        return
    if hook.side_effects is None:
        raise CallFailed(hook.name, "Webhook SideEffects is nil", 400)
    if hook.side_effects not in ("None", "NoneOnDryRun"):
        raise dry_run_unsupported(hook.name)


@lru_cache(maxsize=1024)
def _address(client: Client) -> tuple[str, str, str]:
    """URL, ``host:port`` for credentials, and the name the certificate must have."""
    if client.service:
        name = f"{client.service}.{client.namespace}.svc"
        return f"https://{name}:{client.port}{plain_path(client.path)}", f"{name}:{client.port}", name
    parts = urlsplit(client.url)
    target = parts.netloc if parts.port else f"{parts.netloc}:443"
    return (f"{parts.scheme}://{parts.netloc}{plain_path(parts.path)}", target, "") if client.url else ("", "", "")


def decode_answer(answer: Answer) -> Any:
    """The JSON of an answer. Raises OutgoingError for one that is no success or no JSON."""
    if not 200 <= answer.status <= 206:
        raise OutgoingError(_server_message(answer))
    try:
        return large_json.loads(answer.body)
    except orjson.JSONDecodeError:
        why = go_json.explain(answer.body)
        raise OutgoingError(f"couldn't get version/kind; json parse error: {why}") from None


def _server_message(answer: Answer) -> str:
    """What Go's client makes of an answer that is no success: the Status in it, or words for its code."""
    try:
        status = large_json.loads(answer.body)
        if isinstance(status, dict) and status.get("kind") == "Status" and status.get("message"):
            return str(status["message"])
    except orjson.JSONDecodeError:
        pass
    known = _SERVER_MESSAGES.get(answer.status)
    if known is not None:
        return known
    is_text = answer.headers.get("content-type", "").startswith("text/")
    text = answer.body[:_SHOWN].decode("utf-8", "replace").strip() if is_text else "unknown"
    if answer.status in (403, 406, 415):
        return text
    if answer.status >= 500:
        return f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {answer.status} but did not return more information"
