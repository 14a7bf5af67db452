"""Conversations as kubectl and helm hold them: what each command sends, in some sensible order, with random values."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from differential_admission import APPLY, MERGE, STRATEGIC, dump
from differential_answers import JSON, Request
from differential_fields import set_some_field, structs_in
from differential_samples import SAMPLES, Sample, place, sound

JSON_PATCH = "application/json-patch+json"
TABLES = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_LAST = "kubectl.kubernetes.io/last-applied-configuration"


class _On(NamedTuple):
    """What a command is about: an object, where it is, and how it was made."""

    choice: random.Random
    namespace: str
    name: str
    where: str
    body: dict[str, Any]
    resource: str

    @property
    def path(self) -> str:
        return f"{self.where}/{self.name}"

    def changed(self) -> dict[str, Any]:
        """The object with something else in it, mostly something that may change."""
        body: dict[str, Any] = json.loads(json.dumps(self.body))
        if self.choice.random() < 0.4:
            set_some_field(self.choice, *self.choice.choice(structs_in(body)))
        labels = body["metadata"].setdefault("labels", {})
        labels[self.choice.choice("abc")] = self.choice.choice("xyz")
        if "replicas" in body.get("spec", {}):
            body["spec"]["replicas"] = self.choice.randrange(5)
        return body


_Command = Callable[[_On], list[Request]]
_STEADY = tuple(
    each
    for each in SAMPLES
    if not each.body["apiVersion"].startswith(("flowcontrol.", "admissionregistration.")) and each.resource != "events"
)
_TEMPLATED = ("deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers")


def kubectl(choice: random.Random, names: Any) -> list[Request]:
    """An object and the commands that are given about it."""
    wanted = choice.random()
    some = [each for each in _STEADY if each.resource in _TEMPLATED] if wanted < 0.4 else _STEADY
    some = [each for each in _STEADY if each.resource == "pods"] if wanted > 0.8 else some
    sample: Sample = choice.choice(some)
    body = sound(sample, names.name)
    body["metadata"].setdefault("labels", {})["app.kubernetes.io/name"] = names.name
    on = _On(choice, names.namespace, names.name, place(sample, names.namespace), body, sample.resource)
    commands: list[_Command] = [*_GENERAL, *_ABOUT.get(sample.resource, ())]
    if sample.resource in _TEMPLATED:
        commands += _ABOUT_TEMPLATES
    said = choice.choice((_create, _apply_first, _apply_on_server))(on)
    for _ in range(choice.randrange(3, 9)):
        said += choice.choice(commands)(on)
    return [*said, Request("GET", on.path), *_delete(on), Request("DELETE", f"{on.path}?gracePeriodSeconds=0")]


def _dry(choice: random.Random) -> str:
    return choice.choice(("", "", "", "&dryRun=All"))


def _create(on: _On) -> list[Request]:
    path = f"{on.where}?fieldManager=kubectl-create&fieldValidation=Strict{_dry(on.choice)}"
    return [Request("POST", path, dump(on.body), unordered=True)]


def _noted(body: dict[str, Any]) -> dict[str, Any]:
    """An object with the note that a client-side apply leaves."""
    noted: dict[str, Any] = json.loads(json.dumps(body))
    text = json.dumps(body, separators=(",", ":"), sort_keys=True) + "\n"
    noted["metadata"].setdefault("annotations", {})[_LAST] = text
    return noted


def _apply_first(on: _On) -> list[Request]:
    query = "?fieldManager=kubectl-client-side-apply&fieldValidation=Strict"
    return [Request("GET", on.path), Request("POST", on.where + query, dump(_noted(on.body)), unordered=True)]


def _apply(on: _On) -> list[Request]:
    changed = on.changed()
    patch = _patch_between(on.body, changed)
    patch.setdefault("metadata", {}).setdefault("annotations", {})[_LAST] = _noted(changed)["metadata"]["annotations"][
        _LAST
    ]
    query = f"?fieldManager=kubectl-client-side-apply&fieldValidation=Strict{_dry(on.choice)}"
    return [
        Request("GET", on.path, keeps="o"),
        Request("PATCH", on.path + query, dump(patch), STRATEGIC, unordered=True),
    ]


def _patch_between(old: Any, new: Any) -> Any:
    """What kubectl sends to make one of the other: differences, with the order of lists of named things."""
    made: dict[str, Any] = {}
    for key in sorted({*old, *new}):
        if key not in new:
            made[key] = None
        elif key not in old:
            made[key] = new[key]
        elif old[key] != new[key] and isinstance(old[key], dict) and isinstance(new[key], dict):
            made[key] = _patch_between(old[key], new[key])
        elif old[key] != new[key] and key == "containers" and all("name" in each for each in new[key]):
            made[f"$setElementOrder/{key}"] = [{"name": each["name"]} for each in new[key]]
            made[key] = new[key]
        elif old[key] != new[key]:
            made[key] = new[key]
    return made


def _apply_on_server(on: _On) -> list[Request]:
    manager = on.choice.choice(("kubectl", "kubectl", "argocd-controller", "flux", "kubectl-client-side-apply"))
    force = on.choice.choice(("", "&force=true", "&force=false"))
    query = f"?fieldManager={manager}&fieldValidation=Strict{force}{_dry(on.choice)}"
    body = on.choice.choice((on.body, on.changed()))
    return [Request("PATCH", on.path + query, dump(body), APPLY, unordered=True)]


def _label(on: _On) -> list[Request]:
    part = on.choice.choice(("labels", "annotations"))
    values = {on.choice.choice(("a", "b.c/d", "bad key", "e")): on.choice.choice(("v", None, "", "x" * 64))}
    metadata: dict[str, Any] = {part: values}
    if on.choice.random() < 0.4:
        metadata["resourceVersion"] = on.choice.choice(("$(o.rv)", "1"))
    query = f"?fieldManager=kubectl-{part[:-1]}{_dry(on.choice)}"
    kind = on.choice.choice((MERGE, STRATEGIC))
    return [Request("GET", on.path, keeps="o"), Request("PATCH", on.path + query, dump({"metadata": metadata}), kind)]


def _edit(on: _On) -> list[Request]:
    patch = dump(_patch_between(on.body, on.changed()))
    query = "?fieldManager=kubectl-edit&fieldValidation=Strict"
    return [Request("PATCH", on.path + query, patch, on.choice.choice((MERGE, STRATEGIC)), unordered=True)]


def _replace(on: _On) -> list[Request]:
    body = on.changed()
    body["metadata"] |= on.choice.choice(
        ({}, {"resourceVersion": "$(o.rv)"}, {"resourceVersion": "$(o.rv)", "uid": "$(o.uid)"}, {"uid": "u"})
    )
    query = f"?fieldManager=kubectl-replace&fieldValidation=Strict{_dry(on.choice)}"
    below = on.choice.choice(("", "", "", "", "/status"))
    return [
        Request("GET", on.path, keeps=on.choice.choice(("o", ""))),
        Request("PUT", f"{on.path}{below}{query}", dump(body), unordered=True),
    ]


def _patch_below(on: _On) -> list[Request]:
    below = on.choice.choice(("status", "scale", "resize", "ephemeralcontainers", "finalize", "approval"))
    patch: dict[str, Any] = on.choice.choice(
        ({"status": {"observedGeneration": 1}}, {"spec": {"replicas": 2}}, {"spec": {}}, {})
    )
    query = f"?fieldManager=kubectl-patch{_dry(on.choice)}"
    return [
        Request("PATCH", f"{on.path}/{below}{query}", dump(patch), on.choice.choice((MERGE, STRATEGIC)), unordered=True)
    ]


def _get(on: _On) -> list[Request]:
    selector = f"labelSelector=app.kubernetes.io%2Fname%3D{on.name}"
    accept = on.choice.choice((TABLES, TABLES, JSON, METADATA))
    return [
        Request("GET", on.choice.choice((f"{on.where}?limit=500&{selector}", on.path)), accept=accept),
    ]


def _watch(on: _On) -> list[Request]:
    one = f"fieldSelector=metadata.name%3D{on.name}"
    accept = on.choice.choice((TABLES, JSON))
    query = f"{one}&resourceVersion=$(l.rv)&watch=true&timeoutSeconds=1"
    return [
        Request("GET", f"{on.where}?{one}&limit=500", accept=accept),
        Request("GET", f"{on.where}?{one}", keeps="l"),
        *_label(on),
        Request("GET", f"{on.where}?{query}", accept=accept),
    ]


def _describe(on: _On) -> list[Request]:
    selected = f"involvedObject.name%3D{on.name}%2CinvolvedObject.namespace%3D{on.namespace}"
    events = f"/api/v1/namespaces/{on.namespace}/events"
    event = {
        "metadata": {"name": f"{on.name}.{on.choice.randrange(9)}"},
        "involvedObject": {"kind": on.body["kind"], "name": on.name, "namespace": on.namespace, "uid": "$(o.uid)"},
        "reason": on.choice.choice(("Created", "", "Back off")),
        "message": "m",
        "type": on.choice.choice(("Normal", "Warning", "Odd")),
        "source": {"component": "c", "host": "h"},
        "count": on.choice.choice((1, 0, 7)),
        "lastTimestamp": "2020-01-01T00:00:00Z",
    }
    return [
        Request("GET", on.path, keeps="o"),
        Request("POST", events, dump(event)),
        Request("GET", f"{events}?fieldSelector={selected}%2CinvolvedObject.uid%3D$(o.uid)&limit=500"),
        Request("GET", f"{events}?fieldSelector={selected}", accept=TABLES),
    ]


def _delete(on: _On) -> list[Request]:
    options: dict[str, Any] = {"propagationPolicy": on.choice.choice(("Background", "Foreground", "Orphan"))}
    if on.choice.random() < 0.3:
        options["preconditions"] = on.choice.choice(
            ({"uid": "$(o.uid)"}, {"resourceVersion": "$(o.rv)"}, {"resourceVersion": "1"})
        )
    if on.choice.random() < 0.3:
        options["gracePeriodSeconds"] = on.choice.choice((0, 1, 30))
    dry = on.choice.choice(("", "", "?dryRun=All"))
    if dry:
        options["dryRun"] = ["All"]
    return [Request("GET", on.path, keeps="o"), Request("DELETE", on.path + dry, dump(options))]


def _delete_some(on: _On) -> list[Request]:
    selector = f"labelSelector=app.kubernetes.io%2Fname%3D{on.name}"
    return [Request("DELETE", f"{on.where}?{selector}{_dry(on.choice)}", dump({"propagationPolicy": "Background"}))]


def _can(on: _On) -> list[Request]:
    review = {
        "spec": {
            "resourceAttributes": {
                "namespace": on.namespace,
                "verb": on.choice.choice(("get", "list", "delete", "*")),
                "resource": on.resource,
                "name": on.choice.choice(("", on.name)),
                "subresource": on.choice.choice(("", "status")),
            }
        }
    }
    user = on.choice.choice(("", "u", "system:kube-scheduler", "system:kube-controller-manager"))
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return [
        Request("POST", f"{reviews}?fieldManager=kubectl-create", dump(review), user=user),
        Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", dump({}), user=user, accept=TABLES),
    ]


_GENERAL: tuple[_Command, ...] = (
    _apply, _apply, _apply_on_server, _apply_on_server, _label, _edit, _replace, _replace, _patch_below, _get, _get,
    _describe, _delete, _delete_some, _can, _create,
)  # fmt: skip


def _set_image(on: _On) -> list[Request]:
    containers = [{"name": on.choice.choice("ccd"), "image": on.choice.choice(("i:1", "r.example/i@sha256:aa", ""))}]
    order = [{"name": each["name"]} for each in containers]
    return _template_patch(on, "set", {"$setElementOrder/containers": order, "containers": containers})


def _set_others(on: _On) -> list[Request]:
    env = [{"name": on.choice.choice("ABC"), **on.choice.choice(({"value": "v"}, {"$patch": "delete"}, {"value": ""}))}]
    resources = {"limits": {"cpu": on.choice.choice(("200m", "2", "50m"))}}
    changed = on.choice.choice(({"env": env}, {"resources": resources}, {"env": env, "resources": resources}))
    order = [{"name": "c"}]
    spec = on.choice.choice(
        (
            {"$setElementOrder/containers": order, "containers": [{"name": "c", **changed}]},
            {"serviceAccount": "s", "serviceAccountName": "s"},
            {"serviceAccountName": None},
        )
    )
    return _template_patch(on, "set", spec)


def _template_patch(on: _On, command: str, spec: Any) -> list[Request]:
    query = f"?fieldManager=kubectl-{command}{_dry(on.choice)}"
    return [
        Request("PATCH", on.path + query, dump({"spec": {"template": {"spec": spec}}}), STRATEGIC, unordered=True),
    ]


def _rollout(on: _On) -> list[Request]:
    restarted = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}}
    spec = on.choice.choice(({"template": restarted}, {"paused": True}, {"paused": None}, {"template": None}))
    template = {**on.body.get("spec", {}).get("template", {}), **on.choice.choice(({}, restarted))}
    undo = [
        {"op": "replace", "path": "/spec/template", "value": template},
        {"op": "replace", "path": "/metadata/annotations", "value": {"deployment.kubernetes.io/revision": "1"}},
    ]
    restart = (dump({"spec": spec}), STRATEGIC)
    patched = on.choice.choice((restart, restart, (dump(undo), JSON_PATCH)))
    revisions = f"/apis/apps/v1/namespaces/{on.namespace}/{on.choice.choice(('replicasets', 'controllerrevisions'))}"
    return [
        Request("PATCH", f"{on.path}?fieldManager=kubectl-rollout", *patched, unordered=True),
        Request("GET", f"{revisions}?labelSelector=app%3D{on.name}"),
    ]


def _scale(on: _On) -> list[Request]:
    scale = f"{on.path}/scale"
    replicas = on.choice.choice((0, 1, 3, -1))
    whole = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": on.name, "namespace": on.namespace, "resourceVersion": on.choice.choice(("$(s.rv)", "1"))},
        "spec": {"replicas": replicas},
    }
    way = on.choice.choice(
        (
            Request("PATCH", scale, dump({"spec": {"replicas": replicas}}), MERGE),
            Request("PUT", scale, dump(whole)),
            Request("PUT", f"{scale}?dryRun=All", dump(whole)),
        )
    )
    return [Request("GET", scale, keeps="s", accept=JSON), way, Request("GET", scale, accept=TABLES)]


def _autoscale(on: _On) -> list[Request]:
    version = on.choice.choice(("v2", "v1"))
    spec: dict[str, Any] = {
        "maxReplicas": on.choice.choice((3, 0, 1)),
        "minReplicas": on.choice.choice((1, 2, 0)),
        "scaleTargetRef": {"apiVersion": on.body["apiVersion"], "kind": on.body["kind"], "name": on.name},
    }
    target = {"type": "Utilization", "averageUtilization": on.choice.choice((80, 0))}
    if version == "v2":
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        if on.choice.random() < 0.4:
            rules = {"stabilizationWindowSeconds": on.choice.choice((0, 300, 4000)), "selectPolicy": "Max"}
            spec["behavior"] = {on.choice.choice(("scaleUp", "scaleDown")): rules}
    else:
        spec["targetCPUUtilizationPercentage"] = 80
    where = f"/apis/autoscaling/{version}/namespaces/{on.namespace}/horizontalpodautoscalers"
    other = where.replace(version, "v1" if version == "v2" else "v2", 1)
    body = {"metadata": {"name": on.name}, "spec": spec}
    return [
        Request("POST", f"{where}?fieldManager=kubectl-autoscale{_dry(on.choice)}", dump(body), unordered=True),
        Request("GET", f"{other}/{on.name}"),
        Request("GET", f"{where}/{on.name}", accept=TABLES),
        Request("PATCH", f"{other}/{on.name}", dump({"spec": {"maxReplicas": 5}}), MERGE),
        Request("DELETE", f"{where}/{on.name}"),
    ]


def _expose(on: _On) -> list[Request]:
    port = {"protocol": "TCP", "port": on.choice.choice((80, 0, 443)), "targetPort": on.choice.choice((8080, "http"))}
    spec = {"ports": [port], "selector": {"app": on.name}, "type": on.choice.choice(("ClusterIP", "NodePort"))}
    spec |= on.choice.choice(({}, {"sessionAffinity": "ClientIP"}, {"clusterIP": "None"}))
    services = f"/api/v1/namespaces/{on.namespace}/services"
    body = {"metadata": {"name": on.name, "labels": {"app": on.name}}, "spec": spec}
    said = Request("POST", f"{services}?fieldManager=kubectl-expose{_dry(on.choice)}", dump(body), unordered=True)
    return [said, Request("GET", f"{services}/{on.name}", accept=TABLES), Request("DELETE", f"{services}/{on.name}")]


_ABOUT_TEMPLATES: tuple[_Command, ...] = (
    _set_image, _set_image, _set_others, _set_others, _rollout, _rollout, _scale, _scale, _autoscale, _expose,
)  # fmt: skip


def _debug(on: _On) -> list[Request]:
    container: dict[str, Any] = {
        "name": on.choice.choice(("debugger", "c", "d2")),
        "image": "busybox",
        "stdin": True,
        "tty": on.choice.choice((True, False)),
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File",
        "resources": {},
    }
    container |= on.choice.choice(({}, {"targetContainerName": "c"}, {"resources": {"limits": {"cpu": "1"}}}))
    container |= on.choice.choice(({}, {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}))
    patch = {"spec": {"ephemeralContainers": [container]}}
    return [
        Request("PATCH", f"{on.path}/ephemeralcontainers{_dry(on.choice).replace('&', '?')}", dump(patch), STRATEGIC,
                unordered=True),
        Request("GET", f"{on.path}/ephemeralcontainers"),
    ]  # fmt: skip


def _reach_into(on: _On) -> list[Request]:
    """Commands that need a kubelet, which nobody is."""
    container = on.choice.choice(("", "&container=c", "&container=none"))
    return [
        on.choice.choice(
            (
                Request("POST", f"{on.path}/exec?command=tar&command=cf&stdout=true&stderr=true{container}"),
                Request("POST", f"{on.path}/attach?stdout=true{container}"),
                Request("POST", f"{on.path}/portforward?ports=80"),
                Request("GET", f"{on.path}/log?{container}{on.choice.choice(('', '&tailLines=-1', '&previous=1'))}"),
                Request("GET", f"{on.path}/log?sinceSeconds={on.choice.choice(('0', 'x', '5'))}{container}"),
                Request("GET", f"{on.path}/proxy/"),
                Request("GET", f"{on.path}:80/proxy/x"),
            )
        )
    ]


def _drain(on: _On) -> list[Request]:
    node = f"/api/v1/nodes/{on.name}"
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": on.name, "namespace": on.namespace},
        "deleteOptions": on.choice.choice(({}, {"gracePeriodSeconds": 0}, {"dryRun": ["All"]}, {"preconditions": {
            "uid": "$(o.uid)"}})),
    }  # fmt: skip
    cordon = dump({"spec": {"unschedulable": True}})
    return [
        Request("POST", "/api/v1/nodes", dump({"metadata": {"name": on.name}})),
        Request("PATCH", f"{node}?fieldManager=kubectl-cordon", cordon, STRATEGIC),
        Request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{on.name}&limit=500"),
        Request("GET", on.path, keeps="o"),
        Request("POST", f"{on.path}/eviction", dump(eviction), unordered=True),
        Request("DELETE", node),
    ]


def _taint(on: _On) -> list[Request]:
    effect = on.choice.choice(("NoSchedule", "NoExecute", "PreferNoSchedule", "Odd"))
    taints = [{"key": on.choice.choice(("a", "b.c/d")), "effect": effect, **on.choice.choice(({}, {"value": "v"}))}]
    taints *= on.choice.choice((1, 1, 1, 2))
    patch = on.choice.choice(({"taints": taints}, {"unschedulable": True}, {"unschedulable": None}, {"taints": None}))
    query = on.choice.choice(("?fieldManager=kubectl-taint", "?fieldManager=kubectl-cordon"))
    return [Request("PATCH", on.path + query, dump({"spec": patch}), STRATEGIC, unordered=True)]


def _token(on: _On) -> list[Request]:
    spec = on.choice.choice(
        ({}, {"expirationSeconds": 600}, {"expirationSeconds": 1}, {"audiences": ["a", "b"]}, {"boundObjectRef": {
            "kind": "Pod", "name": "none", "apiVersion": "v1"}})
    )  # fmt: skip
    return [Request("POST", f"{on.path}/token", dump({"spec": spec}), unordered=True)]


@lru_cache
def _signing_request(name: str, organization: str) -> str:
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    built = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    pem = built.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode()


def certificates(choice: random.Random, names: Any) -> list[Request]:
    """Requests for certificates, and what is decided about them."""
    where = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    path = f"{where}/{names.name}"
    signers = ("kubernetes.io/kube-apiserver-client", "kubernetes.io/kubelet-serving", "a.example/b", "bad",
               "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/legacy-unknown")  # fmt: skip
    usages = ("client auth", "server auth", "digital signature", "key encipherment", "odd", "any")
    spec: dict[str, Any] = {
        "request": _signing_request(
            choice.choice(("u", "system:node:n", "x" * 60)), choice.choice(("", "system:nodes"))
        ),
        "signerName": choice.choice(signers),
        "usages": choice.sample(usages, choice.randrange(1, 4)),
    }
    if choice.random() < 0.3:
        spec["expirationSeconds"] = choice.choice((600, 599, 86400))
    said = [Request("POST", where, dump({"metadata": {"name": names.name}, "spec": spec}), unordered=True)]
    for _ in range(choice.randrange(1, 5)):
        condition = {
            "type": choice.choice(("Approved", "Denied", "Failed", "Odd")),
            "status": choice.choice(("True", "True", "False", "Unknown")),
            "reason": "KubectlApprove",
            "message": "m",
        }
        status: dict[str, Any] = {"conditions": [condition]}
        if choice.random() < 0.3:
            status["certificate"] = choice.choice(("YQ==", spec["request"], ""))
        below = choice.choice(("approval", "approval", "status"))
        whole = {"metadata": {"name": names.name, "resourceVersion": "$(c.rv)"}, "spec": spec, "status": status}
        said.append(Request("GET", path, keeps=choice.choice(("c", "c", ""))))
        said.append(
            choice.choice(
                (
                    Request("PUT", f"{path}/{below}", dump(whole), unordered=True),
                    Request(
                        "PATCH",
                        f"{path}/{below}",
                        dump({"status": status}),
                        choice.choice((MERGE, STRATEGIC)),
                        unordered=True,
                    ),
                )
            )
        )
    return [*said, Request("GET", path, accept=TABLES), Request("GET", path), Request("DELETE", path)]


def helm(choice: random.Random, names: Any) -> list[Request]:
    """Releases that are kept in secrets or config maps, and what is in them installed, upgraded and taken away."""
    kind = choice.choice(("secrets", "configmaps"))
    where = f"/api/v1/namespaces/{names.namespace}/{kind}"
    said = []
    for revision in range(1, choice.randrange(2, 5)):
        status = choice.choice(("deployed", "pending-install", "superseded", "failed"))
        labels = {"name": names.name, "owner": "helm", "status": status, "version": str(revision)}
        body: dict[str, Any] = {
            "metadata": {"name": f"sh.helm.release.v1.{names.name}.v{revision}", "labels": labels},
            "data": {"release": "YQ=="},
        }
        body |= {"type": "helm.sh/release.v1"} if kind == "secrets" else {}
        path = f"{where}/{body['metadata']['name']}"
        selector = choice.choice(
            (f"name={names.name},owner=helm", f"name={names.name},owner=helm,status=deployed",
             f"name={names.name},owner=helm,status in (deployed,failed)", f"name={names.name},status!=superseded")
        ).replace(" ", "%20").replace("=", "%3D").replace(",", "%2C")  # fmt: skip
        said += [
            Request("GET", f"{where}?labelSelector={selector}"),
            Request("POST", where, dump(body)),
            Request("POST", where, dump(body)),
            Request("GET", path, keeps="r"),
            Request("PUT", path, dump({**body, "data": {"release": choice.choice(("Yg==", "", "bad", None))}})),
            Request("GET", f"{where}?labelSelector={selector}", accept=choice.choice((JSON, TABLES))),
        ]
        if kind == "secrets" and choice.random() < 0.3:
            said.append(Request("PATCH", path, dump({"type": choice.choice(("other", None))}), STRATEGIC))
    said += [Request("DELETE", f"{where}/sh.helm.release.v1.{names.name}.v{number}") for number in range(1, 4)]
    return said


_ABOUT: dict[str, tuple[_Command, ...]] = {
    "pods": (_debug, _debug, _reach_into, _reach_into, _drain, _drain, _expose, _watch),
    "nodes": (_taint, _taint, _taint, _drain),
    "serviceaccounts": (_token, _token),
    "configmaps": (_watch,),
}
