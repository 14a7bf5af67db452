"""What the user is told once the server is ready: where it listens, where its data is, what to try, what is missing."""

from __future__ import annotations

import ipaddress
import shlex
from pathlib import Path

from pilothouse import KUBERNETES_VERSION, __version__
from pilothouse.options.own import OwnOptions
from pilothouse.options.server_options import ServerOptions

_NO_CONTROLLERS = """\
  Note          No controllers run in this process. Unless a kube-controller-manager is connected, pods are refused
                until their namespace has a service account (kubectl create serviceaccount default -n NAMESPACE),
                namespaces that are deleted stay Terminating, and deployments make no pods. `pilothouse serve`
                without --controllers runs them."""


def greeting(options: ServerOptions) -> str:
    """Some lines for standard output."""
    lines = [
        f"Pilothouse {__version__} (Kubernetes v{KUBERNETES_VERSION}.0) is ready.",
        f"  Listening on  {_listening(options)}",
        f"  Data in       {Path(options.own.data_dir).absolute()}",
    ]
    if options.derived.admin_kubeconfig:
        path = shlex.quote(str(Path(options.derived.admin_kubeconfig).absolute()))
        lines.append(f"  Try           kubectl --kubeconfig {path} get namespaces")
    if options.living.console:
        lines.append(f"  Console       {server_url(options)}/console/ (to sign in: {_console_command(options)})")
    if not options.living.rows():
        lines.append(_NO_CONTROLLERS)
    return "\n".join(lines)


def _console_command(options: ServerOptions) -> str:
    """What opens the console, signed in as the administrator."""
    if not options.derived.admin_kubeconfig:
        return "a token that the server knows"
    folder = options.own.data_dir
    return "pilothouse console" + ("" if folder == OwnOptions().data_dir else f" --data-dir {shlex.quote(folder)}")


def _listening(options: ServerOptions) -> str:
    """The address that is bound, and where it is reached from here if that is another."""
    bound, reached = options.secure_serving.bind_address or "0.0.0.0", server_url(options)
    address = ipaddress.ip_address(bound)
    if not address.is_unspecified:
        return reached
    host = f"[{address}]" if address.version == 6 else str(address)
    return f"{host}:{options.secure_serving.secure_port}, every address of this machine; from here: {reached}"


def server_url(options: ServerOptions) -> str:
    """Where a client on this machine reaches the server."""
    address = ipaddress.ip_address(options.secure_serving.bind_address or "0.0.0.0")
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1")
    host = f"[{address}]" if address.version == 6 else str(address)
    return f"https://{host}:{options.secure_serving.secure_port}"
