"""Whether a user may act for a signer: for this one by name, or for all of its domain."""

from __future__ import annotations

from pilothouse.admission.environment import Environment
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Decision
from pilothouse.machinery.user import User


async def may_act_for_signer(environment: Environment, user: User, verb: str, signer: str) -> bool:
    """Ask the authorizer; a failure of its counts as a no."""
    domain = signer.partition("/")[0]
    return await _allows(environment, user, verb, signer) or await _allows(environment, user, verb, f"{domain}/*")


async def _allows(environment: Environment, user: User, verb: str, name: str) -> bool:
    if environment.authorizer is None:
        return False
    question = Attributes(user, verb, name=name, group="certificates.k8s.io", version="*", resource="signers")
    try:
        decision, _ = await environment.authorizer.authorize(question)
    except AuthorizationFailed:
        return False
    return decision is Decision.ALLOW
