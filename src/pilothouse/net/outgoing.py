"""Requests that this server makes itself: to webhooks, aggregated servers and kubelets, over pooled connections.

A client has one pool for each way to speak TLS (authorities, certificate, name); equal settings share connections.
``dial`` may send a host name somewhere else than where DNS would, decided whenever a connection is made. Failures are
``OutgoingError`` in the words of Go's client, which users search for. Requests must be made in a Task, which ``post``
sees to; the library behind them is imported when the first one goes out.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pilothouse.net.eager import ensure_task

if TYPE_CHECKING:
    import aiohttp

Dial = Callable[[str, int], Awaitable[tuple[str, int] | None]]
"""Host and port of a URL → address and port to connect to, or None for what DNS says. May raise OutgoingError."""
_MAX_POOLS: Final = 256
_ERRNO_WORDS: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.ECONNRESET: "connection reset by peer",
}
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21})
_EXPIRED: Final = frozenset({9, 10})
_CALL_FAILED: Final = re.compile(r"\('([^']+)', (\d+)")


class OutgoingError(Exception):
    """No answer; ``timed_out`` tells whether the time was up."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS. Equal settings share a pool."""

    authorities: bytes = b""
    """PEM; empty for those of the system."""
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    insecure: bool = False
    certificate: bytes = field(default=b"", repr=False)
    """PEM of a certificate and its key, for those that are not in files."""


PLAIN: Final = Tls()


@dataclass(slots=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class OutgoingClient:
    """Makes requests. Closed once, when the server stops."""

    def __init__(self, dial: Dial | None = None, *, agent: str = "pilothouse") -> None:
        self._dial = dial
        self._agent = agent
        self._pools: OrderedDict[Tls, _Pool] = OrderedDict()

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        tls: Tls = PLAIN,
        headers: Mapping[str, str] | None = None,
        seconds: float = 30.0,
        limit: int = 32 * 1024 * 1024,
    ) -> Answer:
        """Send a body and read the whole answer. Raises OutgoingError."""
        return await self._exchange("POST", url, body, tls, headers, seconds, limit)

    async def get(
        self,
        url: str,
        *,
        tls: Tls = PLAIN,
        headers: Mapping[str, str] | None = None,
        seconds: float = 30.0,
        limit: int = 32 * 1024 * 1024,
    ) -> Answer:
        """Read a whole document. Raises OutgoingError."""
        return await self._exchange("GET", url, None, tls, headers, seconds, limit)

    async def _exchange(
        self,
        method: str,
        url: str,
        body: bytes | None,
        tls: Tls,
        headers: Mapping[str, str] | None,
        seconds: float,
        limit: int,
    ) -> Answer:
        await ensure_task()
        pool = await self._pool(tls)
        what = f'{method.capitalize()} "{url}"'
        try:
            async with asyncio.timeout(seconds):
                async with await self.open(method, url, tls=tls, headers=headers, body=body, pool=pool) as response:
                    data = await response.content.read(limit + 1)
                    while len(data) <= limit and not response.content.at_eof():
                        data += await response.content.read(limit + 1 - len(data))
        except TimeoutError:
            raise OutgoingError(f"{what}: context deadline exceeded", timed_out=True) from None
        except (OSError, ssl.SSLError, ValueError) as error:
            raise OutgoingError(f"{what}: {pool.explain(error)}") from None
        except OutgoingError as error:
            raise OutgoingError(f"{what}: {error}", timed_out=error.timed_out) from None
        except _client_errors() as error:
            raise OutgoingError(f"{what}: {pool.explain(error)}") from None
        if len(data) > limit:
            raise OutgoingError(f"{what}: the answer is larger than {limit} bytes")
        return Answer(response.status, response.headers, data)

    async def open(
        self,
        method: str,
        url: str,
        *,
        tls: Tls = PLAIN,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        pool: _Pool | None = None,
    ) -> aiohttp.ClientResponse:
        """Start a request and return when the head of the answer is there. The caller releases it; no errors mapped."""
        pool = pool or await self._pool(tls)
        given = {"User-Agent": self._agent, **(headers or {})}
        return await pool.session.request(
            method,
            url,
            data=body,
            headers=given,
            ssl=pool.context,
            server_hostname=tls.server_name or None,
            allow_redirects=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        pools, self._pools = self._pools, OrderedDict()
        for pool in pools.values():
            await pool.session.close()

    async def _pool(self, tls: Tls) -> _Pool:
        pool = self._pools.get(tls)
        if pool is not None:
            self._pools.move_to_end(tls)
            return pool
        context = await asyncio.to_thread(_make_context, tls)
        pool = self._pools.get(tls)
        if pool is None:
            pool = self._pools[tls] = _Pool(context, self._dial)
            if len(self._pools) > _MAX_POOLS:
                _, oldest = self._pools.popitem(last=False)
                await oldest.session.close()
        return pool


class _Pool:
    """Connections that speak TLS alike."""

    def __init__(self, context: ssl.SSLContext, dial: Dial | None) -> None:
        import aiohttp

        self.context = context
        self._resolver = _make_resolver(dial)
        connector = aiohttp.TCPConnector(
            resolver=self._resolver, use_dns_cache=False, limit=0, limit_per_host=0, keepalive_timeout=90.0
        )
        none = aiohttp.ClientTimeout(total=None, sock_connect=30.0)
        self.session = aiohttp.ClientSession(connector=connector, timeout=none, cookie_jar=aiohttp.DummyCookieJar())

    def explain(self, error: BaseException) -> str:
        """What went wrong, in the words of Go's client."""
        import aiohttp

        if isinstance(error, OutgoingError):
            return str(error)
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            cause = error.__cause__ or error.os_error
            return str(cause) if isinstance(cause, OutgoingError) else f"dial tcp: lookup {error.host}: no such host"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return _explain_certificate(error.certificate_error, error.host)
        if isinstance(error, aiohttp.ClientSSLError):
            return "http: server gave HTTP response to HTTPS client" if _is_plain(error) else f"tls: {error.os_error}"
        if isinstance(error, aiohttp.ClientConnectorError):
            return self._explain_connecting(error)
        if isinstance(error, aiohttp.ServerDisconnectedError):
            return "EOF"
        if isinstance(error, OSError) and error.errno in _ERRNO_WORDS:
            return f"read: {_ERRNO_WORDS[error.errno]}"
        if isinstance(error, aiohttp.ClientPayloadError):
            return "unexpected EOF"
        return str(error) or type(error).__name__

    def _explain_connecting(self, error: aiohttp.ClientConnectorError) -> str:
        cause: BaseException = error.os_error
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _explain_certificate(cause, error.host or "")
        match = _CALL_FAILED.search(str(cause))
        known = self._resolver.last.get(error.host or "", (error.host, error.port))
        host, port = (match[1], match[2]) if match else known
        where = f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
        number = error.os_error.errno or 0
        words = _ERRNO_WORDS.get(number, (error.os_error.strerror or str(error.os_error)).lower())
        return f"dial tcp {where}: connect: {words}"


def _client_errors() -> type[Exception]:
    import aiohttp

    return aiohttp.ClientError


def _make_resolver(dial: Dial | None) -> Any:
    """A resolver of the library's kind that asks ``dial`` first and remembers what it said."""
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.resolver import ThreadedResolver

    class Resolver(AbstractResolver):
        def __init__(self) -> None:
            self.last: dict[str, tuple[str, int]] = {}
            self._names = ThreadedResolver()

        async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
            found = await dial(host, port) if dial is not None else None
            if found is None:
                results = await self._names.resolve(host, port, family)
            else:
                results = await self._names.resolve(found[0], found[1], family)
            if results:
                self.last[host] = (results[0]["host"], results[0]["port"])
                for result in results:
                    result["hostname"] = host
            return results

        async def close(self) -> None:
            await self._names.close()

    return Resolver()


def _make_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.authorities:
        with suppress(ssl.SSLError):
            context.load_verify_locations(cadata=tls.authorities.decode("latin-1"))
    else:
        context.load_default_certs()
    if tls.cert_file:
        context.load_cert_chain(tls.cert_file, tls.key_file or None)
    if tls.certificate:
        _load_certificate(context, tls.certificate)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load_certificate(context: ssl.SSLContext, pem: bytes) -> None:
    """The module takes certificates from files only: this one lives as long as the call, for its owner's eyes."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-") as folder:
        path = os.path.join(folder, "client.pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
        context.load_cert_chain(path)


def _explain_certificate(error: BaseException, host: str) -> str:
    code = getattr(error, "verify_code", 0)
    prefix = "tls: failed to verify certificate: x509: "
    if code in _UNKNOWN_AUTHORITY:
        return prefix + "certificate signed by unknown authority"
    if code in _EXPIRED:
        return prefix + "certificate has expired or is not yet valid"
    if code in (62, 64):
        return prefix + f"certificate is not valid for {host}"
    return prefix + str(getattr(error, "verify_message", "") or error)


def _is_plain(error: aiohttp.ClientSSLError) -> bool:
    return "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER_FAILURE" in str(error)
