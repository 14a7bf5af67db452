"""PodSecurityPolicy: a pod must fit one of the policies that its user or its service account may use.

Policies are tried by name. The first that the pod fits as it is wins; else, on create, the first that it fits once the
policy has filled in what the pod leaves open. Which one it was is noted with the pod.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.plugins.pod_security_policy.checks import judge
from pilothouse.admission.plugins.pod_security_policy.filling import fill_in
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.legacy import older
from pilothouse.authz.attributes import Attributes as Question
from pilothouse.authz.authorizer import AuthorizationFailed, Decision
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import User

CHOSEN: Final = "kubernetes.io/psp"
_GROUPS: Final = ("policy", "extensions")


class PodSecurityPolicy(Plugin):
    """See the module's docstring."""

    name = "PodSecurityPolicy"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        older.load()
        self._policies = environment.objects("policy", "v1beta1", "podsecuritypolicies")

    async def admit(self, attributes: Attributes) -> None:
        """Fill a new pod in by the policy that it fits."""
        pod = attributes.object
        if pod is None or attributes.subresource or attributes.operation != CREATE:
            return
        filled, name = await self._choose(attributes, pod, may_change=True)
        metadata = filled["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), CHOSEN: name}
        attributes.object = filled
        attributes.annotations["podsecuritypolicy.policy.k8s.io/admit-policy"] = name

    async def validate(self, attributes: Attributes) -> None:
        """Refuse a pod that fits no policy as it is."""
        pod = attributes.object
        if pod is None or attributes.subresource or _only_collected(pod, attributes.old_object):
            return
        _, name = await self._choose(attributes, pod, may_change=False)
        attributes.annotations["podsecuritypolicy.policy.k8s.io/validate-policy"] = name

    async def _choose(self, attributes: Attributes, pod: Object, *, may_change: bool) -> tuple[Object, str]:
        await self._policies.ready()
        policies = sorted(self._policies.list(), key=lambda each: str(each["metadata"]["name"]))
        if not may_change:
            hint = (pod["metadata"].get("annotations") or {}).get(CHOSEN)
            policies.sort(key=lambda each: each["metadata"]["name"] != hint)
        if not policies:
            raise forbidden(attributes, "no providers available to validate pod request")
        original = orjson.dumps(pod)
        changed: tuple[Object, str] | None = None
        errs: list[FieldError] = []
        for policy in policies:
            filled, found = _tried(policy, original)
            same = filled == orjson.loads(original)
            if not found and not same and not may_change:
                continue
            if not await self._may_use(attributes, pod, policy["metadata"]["name"]):
                continue
            if found:
                errs += found
            elif same:
                return filled, policy["metadata"]["name"]
            else:
                changed = changed or (filled, policy["metadata"]["name"])
        if changed is not None:
            return changed
        shown = " ".join(str(error) for error in errs)
        raise forbidden(attributes, f"unable to validate against any pod security policy: [{shown}]")

    async def _may_use(self, attributes: Attributes, pod: Object, policy: str) -> bool:
        account = pod["spec"].get("serviceAccountName")
        users = [attributes.user]
        if account:
            users.insert(0, _account_user(attributes.namespace, account))
        for user in users:
            for group in _GROUPS:
                question = Question(
                    user,
                    "use",
                    namespace=attributes.namespace,
                    group=group,
                    version="*",
                    resource="podsecuritypolicies",
                    name=policy,
                )
                if await self._ask(question):
                    return True
        return False

    async def _ask(self, question: Question) -> bool:
        if self.environment.authorizer is None:
            return True
        try:
            decision, _ = await self.environment.authorizer.authorize(question)
        except AuthorizationFailed:
            return False
        return decision is Decision.ALLOW


def _tried(policy: Object, original: bytes) -> tuple[Object, list[FieldError]]:
    pod: Object = orjson.loads(original)
    fill_in(pod, policy)
    return pod, judge(pod, policy)


def _account_user(namespace: str, name: str) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups=groups)


def _only_collected(pod: Object, old: Object | None) -> bool:
    """Whether an update changes nothing but owners and finalizers, as garbage collection does."""
    if old is None:
        return False
    ignored = ("ownerReferences", "finalizers", "resourceVersion", "managedFields")
    bare = [
        {**each, "metadata": {key: value for key, value in each["metadata"].items() if key not in ignored}}
        for each in (pod, old)
    ]
    return bare[0] == bare[1]
