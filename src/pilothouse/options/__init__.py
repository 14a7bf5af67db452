"""The server's options: every flag of kube-apiserver 1.37 and our own, each declared once.

    options = complete(parse(argv))
    errors = validate(options)        # all of them
    with claimed_folder(options):     # no other server works in --data-dir
        provision(options)            # certificates and kubeconfig, when the options ask for our own

One module a flag group; ``declaring`` says how an option is written down, ``kinds`` what values look like.
"""

from pilothouse.options.completion import complete
from pilothouse.options.greeting import server_url
from pilothouse.options.parsing import UsageError, parse
from pilothouse.options.provisioning import StartError, claimed_folder, provision
from pilothouse.options.server_options import ServerOptions
from pilothouse.options.validation import validate

__all__ = [
    "ServerOptions",
    "StartError",
    "UsageError",
    "claimed_folder",
    "complete",
    "parse",
    "provision",
    "server_url",
    "validate",
]
