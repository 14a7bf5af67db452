"""Conversion by webhook: a ConversionReview there, the converted objects back.

The webhook may change everything but an object's identity; of metadata only labels and annotations are taken from its
answer. Failures carry kube-apiserver's words.
"""

from __future__ import annotations

import base64
import uuid
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit

from pilothouse.admission.webhooks.calling import decode_answer
from pilothouse.apiextensions.serving.conversion import ConversionFailed, Converted, Converter
from pilothouse.apiextensions.serving.conversion_metrics import CALL, INVALID, MALFORMED, PARTIAL, ConversionMetrics
from pilothouse.apis.metadata import validate_annotations, validate_labels
from pilothouse.machinery import large_json
from pilothouse.machinery.field_errors import FieldError, Path, aggregate
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind, parse_group_version
from pilothouse.machinery.objects import Object
from pilothouse.machinery.spans import Fields, Span, propagation_headers, step
from pilothouse.machinery.weights import weight_of
from pilothouse.machinery.workers import weighed
from pilothouse.net.dialing.egress import Egress
from pilothouse.net.outgoing import Dial, OutgoingClient, OutgoingError, Tls, plain_path
from pilothouse.registry.rest_client import RestClient

_AGENT: Final = "kube-apiserver-conversion"
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, */*"}
_SECONDS: Final = 30
_LONGEST: Final = 16 * 1024 * 1024
"""How long an answer may be: what is asked for at once may become many times as long."""
_GROUP: Final = "apiextensions.k8s.io"
_SLOW_CALL: Final = 0.05
_SLOW_OBJECT: Final = 0.008
"""What a call, and each object of it, may take before the log tells of it."""


class ConversionWebhooks:
    """Makes converters that share their connections."""

    def __init__(
        self, dial: Dial | None = None, egress: Egress | None = None, metrics: ConversionMetrics | None = None
    ) -> None:
        egress = egress or Egress()
        self._metrics = metrics or ConversionMetrics()
        self._to_services = RestClient(dial, agent=_AGENT, dialer=egress.cluster)
        self._to_urls = RestClient(agent=_AGENT, dialer=egress.control_plane)

    def converter_for(self, crd: Object) -> Converter | None:
        """The converter of a definition, None where none is needed."""
        conversion = crd["spec"].get("conversion") or {}
        webhook = conversion.get("webhook")
        if conversion.get("strategy") != "Webhook" or webhook is None or webhook.get("clientConfig") is None:
            return None
        client = self._to_urls if webhook["clientConfig"].get("service") is None else self._to_services
        return WebhookConverter(webhook, client, crd["metadata"]["name"], self._metrics)

    async def stop(self) -> None:
        """Close all connections."""
        await self._to_services.close()
        await self._to_urls.close()


class WebhookConverter:
    """Asks one webhook."""

    def __init__(
        self, webhook: Object, client: OutgoingClient, crd: str = "", metrics: ConversionMetrics | None = None
    ) -> None:
        config = webhook["clientConfig"]
        self._client, self._crd = client, crd
        self._metrics = metrics or ConversionMetrics()
        self._version = next((v for v in webhook.get("conversionReviewVersions") or () if v in ("v1", "v1beta1")), "")
        authorities = base64.b64decode(config.get("caBundle") or "").strip()
        service = config.get("service")
        if service is not None:
            host = f"{service['name']}.{service['namespace']}.svc"
            self._url = f"https://{host}:{service.get('port', 443)}{plain_path(service.get('path') or '')}"
            self._tls = Tls(authorities, host)
        else:
            parts = urlsplit(config.get("url") or "")
            self._url = f"{parts.scheme}://{parts.netloc}{plain_path(parts.path)}"
            self._tls = Tls(authorities)

    async def convert(self, objects: list[Object], version: GroupVersion, weight: int) -> Converted:
        """The objects, which are so many bytes, in another version. Raises ``ConversionFailed``."""
        if not self._version:
            raise ConversionFailed("no supported conversion review versions")
        uid = str(uuid.uuid4())
        fields: Fields = {
            "custom-resource-definition": self._crd,
            "desired-api-version": str(version),
            "object-count": len(objects),
            "UID": uid,
        }
        began, failure = perf_counter(), ""
        try:
            with Span("Call conversion webhook", fields, _SLOW_CALL + _SLOW_OBJECT * len(objects)):
                return await self._convert(objects, version, uid, weight)
        except ConversionFailed as error:
            failure = error.kind
            raise
        finally:
            before = _gvk(objects[0]).version
            self._metrics.observe(self._crd, before, version.version, perf_counter() - began, failure)

    async def _convert(self, objects: list[Object], version: GroupVersion, uid: str, weight: int) -> Converted:
        request = {"uid": uid, "desiredAPIVersion": str(version), "objects": objects}
        review = {"kind": "ConversionReview", "apiVersion": f"{_GROUP}/{self._version}", "request": request}
        gvk = _gvk(objects[0])
        try:
            answer = await self._client.post(
                f"{self._url}?timeout={_SECONDS}s",
                await weighed(weight, large_json.dumps, review),
                tls=self._tls,
                headers={**_HEADERS, **propagation_headers()},
                seconds=_SECONDS,
                limit=_LONGEST,
            )
            step("Request completed")
            weight = weight_of(answer.body)
            converted = await weighed(weight, lambda: self._read(decode_answer(answer), uid))
        except (OutgoingError, ValueError) as error:
            kind = CALL if isinstance(error, OutgoingError) else MALFORMED
            raise ConversionFailed(f"conversion webhook for {gvk} failed: {error}", kind) from None
        if len(converted) != len(objects):
            counted = f"returned {len(converted)} objects, expected {len(objects)}"
            raise ConversionFailed(f"conversion webhook for {gvk} {counted}", PARTIAL)
        await weighed(weight, _check_all, objects, converted, version)
        return Converted(converted, weight)

    def _read(self, review: Any, uid: str) -> list[Any]:
        """The converted objects of an answer. Raises ``ValueError``."""
        if not isinstance(review, dict):
            raise ValueError("no response provided")
        if self._version == "v1":
            wanted, got = GroupVersionKind(_GROUP, "v1", "ConversionReview"), _gvk(review)
            if got != wanted:
                raise ValueError(f"expected webhook response of {wanted}, got {got}")
        response = review.get("response")
        if not isinstance(response, dict):
            raise ValueError("no response provided")
        if self._version == "v1" and response.get("uid") != uid:
            raise ValueError(f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid', '')))}")
        result = response.get("result")
        result = result if isinstance(result, dict) else {}
        if result.get("status") != "Success":
            why = f"response.result.status was '{result.get('status', '')}', not 'Success'"
            raise ValueError(result.get("message") or why)
        objects = response.get("convertedObjects")
        return objects if isinstance(objects, list) else []


def _gvk(obj: Object) -> GroupVersionKind:
    try:
        gv = parse_group_version(str(obj.get("apiVersion", "")))
    except ValueError:
        gv = GroupVersion("", "")
    return GroupVersionKind(gv.group, gv.version, str(obj.get("kind", "")))


def _check_all(originals: list[Object], converted: list[Any], version: GroupVersion) -> None:
    for position, (original, each) in enumerate(zip(originals, converted, strict=True)):
        _check(original, each, version, position)


def _check(original: Object, converted: Any, version: GroupVersion, position: int) -> None:
    """Refuse an answer that is not the same object, and put its metadata back."""
    own = _gvk(original)
    where = f"conversion webhook for {own} returned invalid object at index {position}"
    if not isinstance(converted, dict) or not converted.get("kind"):
        raise ConversionFailed(_unreadable(converted), INVALID)
    got = _gvk(converted)
    if got.group_version != version:
        why = f"invalid groupVersion (expected {version}, received {got.group_version})"
        raise ConversionFailed(f"{where}: {why}", INVALID)
    if got.kind != own.kind:
        raise ConversionFailed(f"{where}: invalid kind (expected {own.kind}, received {got.kind})", INVALID)
    metadata = converted.get("metadata")
    try:
        _check_identity(original["metadata"], metadata if isinstance(metadata, dict) else {})
    except ValueError as error:
        raise ConversionFailed(f"conversion webhook for {own} returned invalid object: {error}", INVALID) from None
    try:
        converted["metadata"] = _restore(original["metadata"], metadata)
    except ValueError as error:
        raise ConversionFailed(f"conversion webhook for {own} returned invalid metadata: {error}", INVALID) from None


def _unreadable(converted: Any) -> str:
    """What Go says of an answer that is no object; kube-apiserver passes it on as it is."""
    if converted is None:
        return "unexpected end of JSON input"
    if not isinstance(converted, dict):
        return f"json: cannot unmarshal {json_type(converted)} into Go value of type map[string]interface {{}}"
    return f"Object 'Kind' is missing in '{large_json.dumps(converted).decode()}'"


def _check_identity(original: Object, converted: Object) -> None:
    for key, title in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        wanted, got = original.get(key, ""), converted.get(key, "")
        got = got if isinstance(got, str) else ""
        if wanted != got:
            raise ValueError(f"must have the same {title}: {wanted} != {got}")


def _restore(original: Object, answered: Any) -> Object:
    if answered is None:
        raise ValueError("missing metadata in converted object")
    if not isinstance(answered, dict):
        raise ValueError(f"invalid metadata of type {_go_type(answered)} in converted object")
    metadata = dict(original)
    for key in ("labels", "annotations"):
        given = answered.get(key)
        metadata.pop(key, None)
        if given is None:
            continue
        if not isinstance(given, dict):
            raise ValueError(f"invalid metadata.{key} of type {_go_type(given)} in converted object")
        for name, value in given.items():
            if not isinstance(value, str):
                kind = _go_type(value)
                raise ValueError(f"metadata.{key}[{name}] must be a string, but is {kind} in converted object")
        if given != original.get(key):
            _validate_map(key, given)
        metadata[key] = given
    return metadata


def _validate_map(key: str, given: dict[str, str]) -> None:
    errs: list[FieldError] = []
    if key == "labels":
        validate_labels(given, Path("metadata", "labels"), errs)
    else:
        validate_annotations(given, Path("metadata", "annotation"), errs)
    if errs:
        raise ValueError(aggregate(map(str, errs)))


def _go_type(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", type(None): "<nil>"}
    return names.get(value.__class__) or {dict: "map[string]interface {}", list: "[]interface {}"}[value.__class__]
