"""Webhooks that a test serves itself: certificates, the HTTPS server and the registration are done.

    hook = webhooks.validating(lambda request: "too short" if ... else None, resources=["configmaps"])
    hook = webhooks.mutating(lambda request: {**request["object"], ...}, resources=["pods"])

A review function gets the ``request`` of an AdmissionReview. ``None`` or ``True`` allow, a text or ``False`` refuse; a
mutating one may also give the changed object, from which the patch is made. What it raises is told to the client as an
answer 500, as a webhook that crashes would. ``hook.requests`` has what was asked, in order.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pilothouse.credentials.issuing import issue_serving
from pilothouse.machinery.objects import Object
from pilothouse.testing.client import Client
from pilothouse.testing.in_process import InProcessServer

Verdict = bool | str | Object | None
Review = Callable[[Object], Verdict]
_KIND = "admissionregistration.k8s.io/v1/{}WebhookConfiguration"


@dataclass
class Webhook:
    """A webhook that is registered; ``client_config`` is what another registration needs to reach it."""

    name: str
    client_config: Object
    requests: list[Object] = field(default_factory=list)


class Webhooks:
    """Serves the webhooks of one test, until closed."""

    def __init__(self, server: InProcessServer, namespace: str = "") -> None:
        self._server, self._namespace = server, namespace
        self._client = Client(server.caller())
        self._folder = tempfile.TemporaryDirectory(prefix="pilothouse-webhooks-")
        self._routes: dict[str, Callable[[Object], Object]] = {}
        self._registered: list[tuple[str, str]] = []
        self._http = self._serve()
        threading.Thread(target=self._http.serve_forever, name="webhooks", daemon=True).start()

    def validating(
        self,
        review: Review,
        *,
        resources: Sequence[str],
        operations: Sequence[str] = ("CREATE", "UPDATE"),
        api_groups: Sequence[str] = ("*",),
        everywhere: bool = False,
        **more: Any,
    ) -> Webhook:
        """Register it for the test's namespace, or ``everywhere``; ``more`` are fields of the registration."""
        return self._register("Validating", review, resources, operations, api_groups, everywhere, more)

    def mutating(
        self,
        review: Review,
        *,
        resources: Sequence[str],
        operations: Sequence[str] = ("CREATE", "UPDATE"),
        api_groups: Sequence[str] = ("*",),
        everywhere: bool = False,
        **more: Any,
    ) -> Webhook:
        """The same for one that may change what it sees."""
        return self._register("Mutating", review, resources, operations, api_groups, everywhere, more)

    def conversion(self, convert: Callable[[Object, str], Object]) -> Webhook:
        """Serve the conversion of custom resources: object and wanted version to object. Goes into a definition."""
        return self._route(f"convert-{len(self._routes)}", lambda request: _convert(request, convert))

    def close(self) -> None:
        """Take back the registrations, then stop serving."""
        for kind, name in self._registered:
            self._client.delete(kind, name)
        self._http.shutdown()
        self._http.server_close()
        self._folder.cleanup()

    def _register(
        self,
        sort: str,
        review: Review,
        resources: Sequence[str],
        operations: Sequence[str],
        api_groups: Sequence[str],
        everywhere: bool,
        more: Object,
    ) -> Webhook:
        name = f"test-{time.monotonic_ns():x}.pilothouse.test"
        hook = self._route(name, lambda request: _review(request, review))
        rule = {
            "apiGroups": list(api_groups),
            "apiVersions": ["*"],
            "resources": list(resources),
            "operations": list(operations),
        }
        webhook: Object = {
            "name": name,
            "rules": [rule],
            "clientConfig": hook.client_config,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }
        if self._namespace and not everywhere:
            selector = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
            webhook.setdefault("namespaceSelector", selector)
        kind = _KIND.format(sort)
        version, _, short = kind.rpartition("/")
        registration = {"apiVersion": version, "kind": short, "metadata": {"name": name}, "webhooks": [webhook]}
        made = self._client.create(registration)
        self._registered.append((kind, name))
        # A list that is no older waits for the cache that admission reads too: from now on the webhook is asked.
        since = made["metadata"]["resourceVersion"]
        self._client.list(kind, resourceVersion=since, resourceVersionMatch="NotOlderThan", limit="1")
        return hook

    def _route(self, name: str, answer: Callable[[Object], Object]) -> Webhook:
        ca = base64.b64encode(self._server.pki.ca_cert.read_bytes()).decode()
        port = self._http.server_address[1]
        hook = Webhook(name, {"url": f"https://127.0.0.1:{port}/{name}", "caBundle": ca})

        def route(request: Object) -> Object:
            hook.requests.append(request)
            return answer(request)

        self._routes[f"/{name}"] = route
        return hook

    def _serve(self) -> ThreadingHTTPServer:
        cert, key = Path(self._folder.name) / "hook.crt", Path(self._folder.name) / "hook.key"
        issue_serving(self._server.pki, cert, key, ["localhost"], ["127.0.0.1"], time.time())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        routes = self._routes

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    response = routes[self.path.partition("?")[0]](review["request"])
                except Exception:
                    self._answer(500, traceback.format_exc().encode())
                    return
                answered = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
                self._answer(200, json.dumps(answered).encode())

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing: the test sees what was asked in ``requests``."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return server


def _review(request: Object, review: Review) -> Object:
    verdict = review(request)
    response: Object = {"uid": request["uid"], "allowed": verdict is not False and not isinstance(verdict, str)}
    if isinstance(verdict, str):
        response["status"] = {"message": verdict}
    elif isinstance(verdict, dict):
        patch = [{"op": "replace", "path": "", "value": verdict}]
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    return response


def _convert(request: Object, convert: Callable[[Object, str], Object]) -> Object:
    converted = [convert(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
    return {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}
