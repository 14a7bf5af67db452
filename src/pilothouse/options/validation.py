"""Everything wrong with completed options, in one list: the rules of each group, and those that span groups.

The order is kube-apiserver's, so that two servers given the same wrong flags complain alike.
"""

from __future__ import annotations

from pilothouse.options.feature_gates import gate_enabled
from pilothouse.options.server_options import ServerOptions

_PLUGIN_FLAGS = frozenset({"enable-admission-plugins", "disable-admission-plugins", "admission-control"})


def validate(options: ServerOptions) -> list[str]:
    """All errors of completed options; empty when the server may start."""
    given = options.given
    errors = options.logs.validate(given)
    if not gate_enabled(options.generic.feature_gates, "LoggingAlphaOptions"):
        errors += options.logs.alpha_errors()
    errors += options.own.validate(given) + options.living.validate(given)
    errors += _kubeconfig_errors(options) + _plugin_errors(options)
    errors += options.generic.validate(given) + options.etcd.validate(given)
    if options.features.enable_priority_and_fairness:
        errors += options.api_enablement.flow_control_conflict()
    for group in (
        options.secure_serving,
        options.authentication,
        options.authorization,
        options.audit,
        options.admission,
        options.api_enablement,
    ):
        errors += group.validate(given)
    errors += options.api_enablement.too_new_errors(options.generic.emulation())
    errors += _token_request_errors(options)
    errors += options.metrics.validate(given) + options.egress.validate(given) + options.traces.validate(given)
    errors += _peer_errors(options) + _uid_header_errors(options)
    errors += options.control_plane.validate(given) + options.derived.problems
    return errors


def _plugin_errors(options: ServerOptions) -> list[str]:
    """Import the user's admission plug-ins, so that flags can name them."""
    if not options.own.admission_plugin_modules and not options.given & _PLUGIN_FLAGS:
        return []
    # Half of the server comes along; most command lines need none of it.
    from pilothouse.admission.catalogue import find_own_plugins
    from pilothouse.admission.configuration import ConfigurationError

    try:
        options.admission.own_plugins = frozenset(find_own_plugins(options.own.admission_plugin_modules))
    except ConfigurationError as error:
        return [str(error)]
    return []


def _kubeconfig_errors(options: ServerOptions) -> list[str]:
    if options.own.write_kubeconfig and not options.derived.admin_kubeconfig:
        return [
            "--write-kubeconfig cannot be used with authentication flags: the administrator's certificate is signed by "
            "the authority in --data-dir, which they replace"
        ]
    return []


def _token_request_errors(options: ServerOptions) -> list[str]:
    control_plane, accounts = options.control_plane, options.authentication
    issuer = bool(accounts.service_account_issuer and accounts.service_account_issuer[0])
    attempted = bool(control_plane.service_account_signing_key_file or issuer or accounts.api_audiences)
    signer = control_plane.service_account_signing_key_file or control_plane.service_account_signing_endpoint
    if not attempted:
        return ["--service-account-signing-key-file and --service-account-issuer are required flags"]
    if not (issuer and signer):
        return [
            "--service-account-signing-key-file, --service-account-issuer, and --api-audiences "
            "should be specified together"
        ]
    return []


def _peer_errors(options: ServerOptions) -> list[str]:
    if gate_enabled(options.generic.feature_gates, "UnknownVersionInteroperabilityProxy"):
        return []
    control_plane = options.control_plane
    return [
        f"--{name} requires UnknownVersionInteroperabilityProxy feature to be turned on"
        for name, value in (
            ("peer-ca-file", control_plane.peer_ca_file),
            ("peer-advertise-ip", control_plane.peer_advertise_ip),
            ("peer-advertise-port", control_plane.peer_advertise_port),
        )
        if value
    ]


def _uid_header_errors(options: ServerOptions) -> list[str]:
    enabled = gate_enabled(options.generic.feature_gates, "RemoteRequestHeaderUID")
    if enabled or not options.authentication.requestheader_uid_headers:
        return []
    return ['--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled']
