"""API servers as processes of their own, ours and kube-apiserver, started with the same flags."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

from pilothouse.credentials.pki import Pki, ensure_pki
from pilothouse.testing.ports import free_port

KUBE_APISERVER = os.environ.get("KUBE_APISERVER", "")
PILOTHOUSE = str(Path(sys.executable).with_name("kube-apiserver"))
"""Ours under the name that makes it a drop-in: nothing runs that kube-apiserver does not run."""
READY_SECONDS = 300.0


class ApiServer:
    """One server on an etcd, ours also without; a context manager. Servers of one folder share keys and users."""

    def __init__(self, binary, folder, etcd_urls, *flags, port=0):
        self.binary, self.folder, self.etcd_urls, self.flags = binary, folder, etcd_urls, flags
        self.port = port or free_port()
        self.process = None

    def __enter__(self):
        ensure_pki(
            self.folder, dns_names=["localhost", "kubernetes.default.svc"], ip_addresses=["127.0.0.1", "10.0.0.1"]
        )
        pki = Pki(self.folder / "pki")
        tokens = self.folder / "tokens.csv"
        tokens.write_text('admintoken,admin,admin-uid,"system:masters"\n')
        words = [
            *([f"--etcd-servers={','.join(self.etcd_urls)}"] if self.etcd_urls else []),
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=192.0.2.2",
            f"--tls-cert-file={pki.serving_cert}",
            f"--tls-private-key-file={pki.serving_key}",
            f"--token-auth-file={tokens}",
            f"--service-account-key-file={pki.service_account_public_key}",
            f"--service-account-signing-key-file={pki.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--allow-privileged=true",
            *self.flags,
        ]
        if self.binary == PILOTHOUSE:
            words = [f"--data-dir={self.folder}/data", *words]
        self.log = self.folder / f"{Path(self.binary).name}-{self.port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([self.binary, *words], stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"{self.binary} is not ready:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def is_ready(self):
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def call(self, method, path, body=None, content_type="application/json", accept="application/json"):
        """(status, decoded body)."""
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        headers = {"Authorization": "Bearer admintoken", "Content-Type": content_type, "Accept": accept}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, data.decode(errors="replace")
