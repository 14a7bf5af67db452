"""ImagePolicyWebhook: images are asked about, answers remembered, failures open or closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from pilothouse.admission.configuration import ConfigurationError
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.image_policy_webhook import ImagePolicyWebhook
from pilothouse.authn import webhook_calls
from pilothouse.registry.storage import StorageFactory

PODS = "/v1/pods"


class Backend:
    """The service behind the webhook."""

    def __init__(self) -> None:
        self.reviews: list[Any] = []
        self.status: dict[str, Any] = {"allowed": True}
        self.code = 200

    async def handle(self, request: web.Request) -> web.Response:
        self.reviews.append(orjson.loads(await request.read()))
        return web.json_response({"kind": "ImageReview", "status": self.status}, status=self.code)


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[Backend]:
    made = Backend()
    app = web.Application()
    app.router.add_post("/review", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    (tmp_path / "kubeconfig").write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {}}]\n"
        f"clusters: [{{name: k, cluster: {{server: 'http://127.0.0.1:{port}/review'}}}}]\n"
    )
    yield made
    await runner.cleanup()


@pytest.fixture
def make(storage: StorageFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    async def at_once(seconds: float) -> None:
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)

    monkeypatch.setattr(webhook_calls.call, "__defaults__", (at_once, lambda: 0.0))

    def plugin(clock: Any = lambda: 0.0, **more: Any) -> ImagePolicyWebhook:
        configuration = {"imagePolicy": {"kubeConfigFile": str(tmp_path / "kubeconfig"), **more}}
        return ImagePolicyWebhook(Environment(storage, monotonic=clock), configuration)

    return plugin


async def test_what_is_asked(backend: Backend, make: Any, make_request: Any, make_pod: Any) -> None:
    plugin = make()
    pod = make_pod(initContainers=[{"name": "i", "image": "init"}])
    pod["metadata"]["annotations"] = {"x.image-policy.k8s.io/y": "z", "other": "w"}
    backend.status = {"allowed": True, "auditAnnotations": {"seen": "yes"}}
    attributes = make_request(PODS, pod)
    await plugin.validate(attributes)
    assert backend.reviews[0]["spec"] == {
        "containers": [{"image": "img"}, {"image": "init"}],
        "annotations": {"x.image-policy.k8s.io/y": "z"},
        "namespace": "ns",
    }
    assert attributes.annotations == {"imagepolicywebhook.image-policy.k8s.io/seen": "yes"}
    await plugin.close()


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("bad", "image policy webhook backend denied one or more images: bad"),
        ("", "one or more images rejected by webhook backend"),
    ],
)
async def test_refusals(
    backend: Backend, make: Any, make_request: Any, make_pod: Any, refused: Any, reason: str, message: str
) -> None:
    plugin = make()
    backend.status = {"allowed": False, "reason": reason}
    error = await refused(plugin.validate(make_request(PODS, make_pod())))
    assert error.message == f'pods "p" is forbidden: {message}'
    await plugin.close()


async def test_answers_are_remembered_for_a_while(
    backend: Backend, make: Any, make_request: Any, make_pod: Any
) -> None:
    now = 0.0
    plugin = make(lambda: now, allowTTL=10)
    for moment, asked in ((0.0, 1), (9.0, 1), (11.0, 2)):
        now = moment
        await plugin.validate(make_request(PODS, make_pod()))
        assert len(backend.reviews) == asked
    await plugin.close()


async def test_failures(backend: Backend, make: Any, make_request: Any, make_pod: Any, refused: Any) -> None:
    backend.code = 500
    closed, opened = make(retryBackoff=1), make(retryBackoff=1, defaultAllow=True)
    error = await refused(closed.validate(make_request(PODS, make_pod())))
    assert error.message == 'pods "p" is forbidden: Error contacting webhook: 500'
    assert len(backend.reviews) == 5
    pod = make_pod()
    await opened.validate(make_request(PODS, pod))
    assert pod["metadata"]["annotations"] == {"alpha.image-policy.k8s.io/failed-open": "true"}
    for plugin in (closed, opened):
        await plugin.close()


def test_faulty_configuration(environment: Environment, make: Any, backend: Backend) -> None:
    with pytest.raises(ConfigurationError, match="no config specified"):
        ImagePolicyWebhook(environment)
    with pytest.raises(ConfigurationError, match="valid value is between 1s and 30m0s, got 1h23m20s"):
        make(denyTTL=5000)
    with pytest.raises(ConfigurationError, match="valid value is between 1ns and 5m0s, got 10m0s"):
        make(retryBackoff=600_000)
