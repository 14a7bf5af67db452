"""Conversations about what a cluster runs: pod security, services that change, workloads, quotas and limits."""

from __future__ import annotations

import random
from typing import Any

from differential_admission import APPLY, MERGE, STRATEGIC, dump, own_space
from differential_answers import JSON, Request

_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_LEVELS = ("privileged", "baseline", "restricted", "restricted", "baseline", "odd")
_VERSIONS = ("latest", "v1.25", "v1.0", "v1.19", "v1.29", "v1.37", "v1.99", "1.25", "", "v2.0")


def _security(choice: random.Random, *, whole_pod: bool) -> dict[str, Any]:
    """Some fields of a security context that the levels look at."""
    options: dict[str, tuple[Any, ...]] = {
        "runAsUser": (0, 1, 1000),
        "runAsNonRoot": (True, True, False),
        "seLinuxOptions": ({"type": "container_t"}, {"type": "spc_t"}, {"user": "u"}, {"role": "r"}, {}),
        "seccompProfile": ({"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost",
                           "localhostProfile": "p"}),
        "windowsOptions": ({"hostProcess": True}, {"hostProcess": False}, {}),
        "appArmorProfile": ({"type": "RuntimeDefault"}, {"type": "Unconfined"}),
    }  # fmt: skip
    if whole_pod:
        options["sysctls"] = ([{"name": "kernel.shm_rmid_forced", "value": "1"}], [{"name": "kernel.msgmax",
                              "value": "1"}], [{"name": "net.ipv4.tcp_rmem", "value": "1"}], [])  # fmt: skip
        options["supplementalGroupsPolicy"] = ("Merge", "Strict")
        options["fsGroup"] = (0, 1)
    else:
        options["privileged"] = (True, False)
        options["allowPrivilegeEscalation"] = (False, False, True)
        options["procMount"] = ("Default", "Unmasked")
        options["capabilities"] = ({"drop": ["ALL"]}, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
                                   {"add": ["CHOWN"]},
                                   {"add": ["SYS_ADMIN", "NET_RAW"]}, {"drop": ["all"]}, {})  # fmt: skip
    some = choice.sample(sorted(options), choice.randrange(len(options) // 2 + 1))
    made = {name: choice.choice(options[name]) for name in some}
    if choice.random() < 0.5:  # as the strictest level wants it, but for what was chosen
        made.setdefault("runAsNonRoot", True)
        made.setdefault("seccompProfile", {"type": "RuntimeDefault"})
        if not whole_pod:
            made.setdefault("allowPrivilegeEscalation", False)
            made.setdefault("capabilities", {"drop": ["ALL"]})
    return made


def _volume(choice: random.Random) -> dict[str, Any]:
    return {"name": "v"} | choice.choice(
        ({"emptyDir": {}}, {"hostPath": {"path": "/p"}}, {"configMap": {"name": "m"}}, {"nfs": {"server": "s",
         "path": "/"}}, {"csi": {"driver": "d.example"}}, {"image": {"reference": "i"}}, {"ephemeral": {
             "volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {
                 "storage": "1"}}}}}}, {"projected": {"sources": []}}, {"secret": {"secretName": "s"}})
    )  # fmt: skip


def _judged_pod(choice: random.Random) -> dict[str, Any]:
    def container(name: str) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "image": "i", "securityContext": _security(choice, whole_pod=False)}
        if choice.random() < 0.2:
            made["ports"] = [{"containerPort": 80, "hostPort": choice.choice((0, 80, 8080))}]
        if choice.random() < 0.15:
            made["livenessProbe"] = {"httpGet": {"port": 80, "host": choice.choice(("", "1.2.3.4", "localhost"))}}
        if choice.random() < 0.1:
            made["lifecycle"] = {"preStop": {"tcpSocket": {"port": 80, "host": choice.choice(("", "h"))}}}
        return made

    spec: dict[str, Any] = {"containers": [container(name) for name in choice.choice((["a"], ["a"], ["a", "b"]))]}
    if choice.random() < 0.7:
        spec["securityContext"] = _security(choice, whole_pod=True)
    if choice.random() < 0.2:
        spec["initContainers"] = [container("i")]
    if choice.random() < 0.3:
        spec["volumes"] = [_volume(choice)]
    for name in ("hostNetwork", "hostPID", "hostIPC", "hostUsers"):
        if choice.random() < 0.08:
            spec[name] = choice.random() < 0.7
    if choice.random() < 0.1:
        spec["os"] = {"name": choice.choice(("windows", "linux"))}
    return spec


def security(choice: random.Random, names: Any) -> list[Request]:
    """Namespaces with levels of pod security that change, pods and workloads that keep to them or do not."""

    def labels() -> dict[str, str]:
        made = {}
        for mode in ("enforce", "audit", "warn"):
            if choice.random() < 0.6:
                made[f"pod-security.kubernetes.io/{mode}"] = choice.choice(_LEVELS[:5] * 3 + _LEVELS[5:])
            if choice.random() < 0.3:
                made[f"pod-security.kubernetes.io/{mode}-version"] = choice.choice(_VERSIONS[:7] * 2 + _VERSIONS[7:])
        return made

    namespace = f"n-{names.name}"
    where = f"/api/v1/namespaces/{namespace}"
    body = {"metadata": {"name": namespace, "labels": labels()}}
    said = [Request("POST", "/api/v1/namespaces", dump(body), unordered=True),
            Request("POST", "/api/v1/namespaces", dump({"metadata": {"name": namespace}}))]  # fmt: skip
    for number in range(choice.randrange(2, 6)):
        spec = _judged_pod(choice)
        notes = choice.choice(({}, {}, {"annotations": {
            f"container.apparmor.security.beta.kubernetes.io/{choice.choice('ab')}": choice.choice(
                ("runtime/default", "unconfined", "localhost/p"))}}))  # fmt: skip
        pod = {"metadata": {"name": f"p{number}", "labels": {"a": "b"}, **notes}, "spec": spec}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
        selector = {"matchLabels": {"a": "b"}}
        way = choice.randrange(6)
        if way < 4:
            said.append(Request("POST", f"{where}/pods", dump(pod), unordered=True))
            if choice.random() < 0.3:
                debugger = {"name": "d", "image": "i", "securityContext": _security(choice, whole_pod=False)}
                patch = {"spec": {"ephemeralContainers": [debugger]}}
                said.append(Request("PATCH", f"{where}/pods/p{number}/ephemeralcontainers", dump(patch), STRATEGIC,
                                    unordered=True))  # fmt: skip
        elif way == 4:
            path = f"/apis/apps/v1/namespaces/{namespace}/{choice.choice(('deployments', 'daemonsets', 'replicasets'))}"
            workload = {"metadata": {"name": f"w{number}"}, "spec": {"selector": selector, "template": template}}
            said.append(Request("POST", path, dump(workload), unordered=True))
        else:
            job = {"template": {"spec": {**spec, "restartPolicy": "Never"}}}
            cron = {"schedule": "* * * * *", "jobTemplate": {"spec": job}}
            path, of = choice.choice((("jobs", job), ("cronjobs", cron)))
            said.append(Request("POST", f"/apis/batch/v1/namespaces/{namespace}/{path}",
                                dump({"metadata": {"name": f"w{number}"}, "spec": of}), unordered=True))  # fmt: skip
        if choice.random() < 0.3:
            relabelled = {"metadata": {"labels": labels()}}
            query = choice.choice(("", "?dryRun=All"))
            said.append(Request("PATCH", where + query, dump(relabelled), MERGE, unordered=True))
    return [*said, *(Request("DELETE", f"{where}/pods/p{number}?gracePeriodSeconds=0") for number in range(5))]


def _service(choice: random.Random) -> dict[str, Any]:
    ports = [
        {
            "name": choice.choice((f"p{n}", f"p{n}", "same")),
            "port": choice.choice((80 + n, 80)),
            "protocol": choice.choice(("TCP", "TCP", "UDP", "SCTP")),
            **choice.choice(({}, {"targetPort": choice.choice((8080, "http", "BAD", 0))}, {"appProtocol": "a.b/c"})),
        }
        for n in range(choice.choice((1, 1, 2)))
    ]
    spec: dict[str, Any] = {"type": choice.choice(("ClusterIP", "NodePort", "LoadBalancer")), "ports": ports}
    options: dict[str, tuple[Any, ...]] = {
        "externalTrafficPolicy": ("Local", "Cluster", ""),
        "internalTrafficPolicy": ("Local", "Cluster"),
        "sessionAffinity": ("ClientIP", "None"),
        "sessionAffinityConfig": ({"clientIP": {"timeoutSeconds": 5}}, {"clientIP": {"timeoutSeconds": 0}}, {}),
        "ipFamilyPolicy": ("SingleStack", "PreferDualStack", "RequireDualStack"),
        "ipFamilies": (["IPv4"], ["IPv6"], ["IPv4", "IPv6"]),
        "allocateLoadBalancerNodePorts": (True, False),
        "loadBalancerClass": ("a.b/c", "bad class"),
        "loadBalancerSourceRanges": (["10.0.0.0/8"], ["x"], []),
        "loadBalancerIP": ("1.2.3.4",),
        "externalIPs": (["1.2.3.4"], ["127.0.0.1"], ["::1"]),
        "externalName": ("h.example", "1.2.3.4"),
        "publishNotReadyAddresses": (True,),
        "trafficDistribution": ("PreferClose", "PreferSameZone", "PreferSameNode", "odd"),
        "selector": ({"a": "b"}, None, {}),
        "clusterIP": ("None", ""),
    }
    for name in choice.sample(sorted(options), choice.randrange(4)):
        spec[name] = choice.choice(options[name])
    if choice.random() < 0.12:
        spec["type"] = "ExternalName"
        spec["externalName"] = "h.example"
    return spec


def reshaping(choice: random.Random, names: Any) -> list[Request]:
    """A service that becomes another: types, ports, families, policies, by updates, patches and applies."""
    where = f"/api/v1/namespaces/{names.namespace}/services"
    path = f"{where}/{names.name}"
    head = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": names.name}}
    said = [Request("POST", where, dump({**head, "spec": _service(choice)}), unordered=True, keeps="o")]
    for _ in range(choice.randrange(2, 7)):
        spec = _service(choice)
        few = {key: spec[key] for key in choice.sample(sorted(spec), min(len(spec), 2))}
        few |= choice.choice(({}, {}, {"clusterIP": None, "clusterIPs": None}, {"externalTrafficPolicy": None}))
        status = {"loadBalancer": {"ingress": [choice.choice((
            {"ip": "1.2.3.4"}, {"hostname": "h"}, {"ip": "x"}, {"ip": "1.2.3.4", "ipMode": "Proxy"}, {
                "ip": "1.2.3.4", "ports": [{"port": 80, "protocol": "TCP"}]}))]}}  # fmt: skip
        whole = {**head, "metadata": {"name": names.name, "resourceVersion": choice.choice(("$(o.rv)", ""))}}
        said.append(
            choice.choice(
                (
                    Request("PUT", path, dump({**whole, "spec": spec}), unordered=True),
                    Request("PATCH", path, dump({"spec": few}), MERGE, unordered=True),
                    Request("PATCH", path, dump({"spec": few}), STRATEGIC, unordered=True),
                    Request("PATCH", path, dump({"spec": spec}), STRATEGIC, unordered=True),
                    Request("PATCH", f"{path}?fieldManager=m&force=true", dump({**head, "spec": spec}), APPLY,
                            unordered=True),
                    Request("PATCH", f"{path}/status", dump({"status": status}), MERGE, unordered=True),
                    Request("PATCH", f"{path}?dryRun=All", dump({"spec": few}), MERGE, unordered=True),
                )
            )
        )  # fmt: skip
        said.append(Request("GET", path, keeps="o", accept=choice.choice((JSON, JSON, _TABLE))))
    return [*said, Request("DELETE", path)]


_CONTAINER = {"name": "c", "image": "i"}


def _workload(choice: random.Random, kind: str) -> dict[str, Any]:
    """What a workload may be made with, and changed to."""
    labels = choice.choice(({"a": "b"},) * 8 + ({"a": "c"}, {}))
    container = _CONTAINER | choice.choice(({}, {}, {"image": "j"}, {"env": [{"name": "A", "value": "b"}]}))
    pod: dict[str, Any] = {"containers": [container]}
    pod |= choice.choice(({}, {}, {"terminationGracePeriodSeconds": 1}, {"nodeName": "n"}, {"priority": 1}))
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec: dict[str, Any] = {"selector": {"matchLabels": choice.choice(({"a": "b"},) * 8 + ({"a": "c"}, {}))}}
    options: dict[str, dict[str, tuple[Any, ...]]] = {
        "deployments": {
            "replicas": (0, 3, -1), "paused": (True, False), "revisionHistoryLimit": (0, 2, -1),
            "minReadySeconds": (0, 5, -1, 700), "progressDeadlineSeconds": (600, 5, 0),
            "strategy": ({"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0,
                         "maxUnavailable": 0}}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "150%"}},
                         {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}, {"rollingUpdate": {
                             "maxUnavailable": "x%"}}, {"type": "Odd"}),
        },
        "statefulsets": {
            "replicas": (0, 3, -1), "serviceName": ("s", "t", ""), "podManagementPolicy": ("Parallel", "OrderedReady",
            "Odd"), "updateStrategy": ({"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": {
                "partition": 1}}, {"type": "RollingUpdate", "rollingUpdate": {"partition": -1, "maxUnavailable": 1}},
                {"type": "OnDelete", "rollingUpdate": {"partition": 1}}, {"type": ""}),
            "ordinals": ({"start": 1}, {"start": -1}), "revisionHistoryLimit": (0, 2, -1), "minReadySeconds": (0, -1),
            "persistentVolumeClaimRetentionPolicy": ({"whenDeleted": "Delete"}, {"whenScaled": "Retain"}, {
                "whenScaled": "Odd"}),
            "volumeClaimTemplates": ([{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                      "resources": {"requests": {"storage": "1Gi"}}}}], [], [{"metadata": {
                                          "name": "BAD"}, "spec": {}}]),
        },
        "daemonsets": {
            "minReadySeconds": (0, 5, -1), "revisionHistoryLimit": (0, -1), "updateStrategy": ({"type": "OnDelete"}, {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, {"rollingUpdate": {"maxSurge": 1,
                "maxUnavailable": 1}}, {"rollingUpdate": {"maxUnavailable": 0}}, {"type": "Odd"}),
        },
        "replicasets": {"replicas": (0, 3, -1), "minReadySeconds": (0, -1)},
        "jobs": {
            "parallelism": (0, 1, -1, 200000), "completions": (1, 3, None, -1), "backoffLimit": (0, 6, -1),
            "completionMode": ("Indexed", "NonIndexed", "Odd"), "suspend": (True, False), "manualSelector": (True,),
            "activeDeadlineSeconds": (5, -1), "ttlSecondsAfterFinished": (0, -1), "backoffLimitPerIndex": (1, -1),
            "maxFailedIndexes": (1, 9), "podReplacementPolicy": ("Failed", "TerminatingOrFailed", "Odd"),
            "managedBy": ("a.b/c", "kubernetes.io/job-controller", "bad"),
            "podFailurePolicy": ({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]},
                                 {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
                                 {"rules": [{"action": "Count"}]}, {"rules": []}, {"rules": [{"action": "FailIndex",
                                  "onExitCodes": {"operator": "NotIn", "values": [0, 0], "containerName": "z"}}]}),
            "successPolicy": ({"rules": [{"succeededCount": 1}]}, {"rules": [{"succeededIndexes": "0-1,3"}]},
                              {"rules": [{"succeededIndexes": "3-1"}]}, {"rules": []}),
        },
        "cronjobs": {
            "schedule": ("* * * * *", "x", "@daily"), "suspend": (True, False), "startingDeadlineSeconds": (5, -1),
            "concurrencyPolicy": ("Forbid", "Allow", "Replace", "Odd"), "successfulJobsHistoryLimit": (0, -1),
            "failedJobsHistoryLimit": (1, -1), "timeZone": ("UTC", "x"),
        },
    }  # fmt: skip
    own = options[kind]
    some = choice.sample(sorted(own), choice.randrange(min(5, len(own) + 1)))
    spec |= {name: choice.choice(own[name]) for name in some}
    if kind in ("jobs", "cronjobs"):
        pod["restartPolicy"] = choice.choice(("Never", "Never", "OnFailure", "Always"))
        if "manualSelector" not in spec:
            del spec["selector"]
    if kind == "cronjobs":
        spec.pop("selector", None)
        return {"schedule": "* * * * *", **spec, "jobTemplate": {"spec": {"template": template, **_job(choice)}}}
    return {**spec, "template": template}


def _job(choice: random.Random) -> dict[str, Any]:
    return choice.choice(({}, {}, {"suspend": True}, {"completions": 2, "parallelism": 2}, {"manualSelector": True}))


_WORKLOADS = (
    ("apps/v1", "deployments", "Deployment"), ("apps/v1", "statefulsets", "StatefulSet"),
    ("apps/v1", "daemonsets", "DaemonSet"), ("apps/v1", "replicasets", "ReplicaSet"), ("batch/v1", "jobs", "Job"),
    ("batch/v1", "jobs", "Job"), ("batch/v1", "cronjobs", "CronJob"),
)  # fmt: skip


def workloads(choice: random.Random, names: Any) -> list[Request]:
    """A workload that is changed in ways that are allowed, and in others, and whose status is told meanwhile."""
    version, resource, kind = choice.choice(_WORKLOADS)
    where = f"/apis/{version}/namespaces/{names.namespace}/{resource}"
    path = f"{where}/{names.name}"
    head = {"apiVersion": version, "kind": kind, "metadata": {"name": names.name}}
    first = _workload(choice, resource)
    said = [Request("POST", where, dump({**head, "spec": first}), unordered=True),
            Request("POST", where, dump({**head, "spec": {**first, "replicas": 1}}), unordered=True)]  # fmt: skip
    for _ in range(choice.randrange(2, 7)):
        other = _workload(choice, resource)
        few = {key: other[key] for key in choice.sample(sorted(other), min(len(other), 2))}
        whole = {**head, "spec": {**first, **few}}
        counts = {key: choice.choice((0, 1, 3, -1)) for key in choice.sample(
            ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "observedGeneration", "active",
             "succeeded", "failed", "ready", "terminating", "currentNumberScheduled", "desiredNumberScheduled",
             "collisionCount", "numberAvailable"), 3)}  # fmt: skip
        more: dict[str, Any] = {}
        if resource == "jobs":
            kinds = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget", "Suspended")
            conditions = [
                {"type": each, "status": choice.choice(("True", "False"))} for each in choice.sample(kinds, 2)
            ]
            more = choice.choice(({"conditions": conditions}, {"startTime": "2026-01-01T00:00:00Z"}, {
                "completionTime": "2026-01-01T00:00:01Z", "startTime": "2026-01-01T00:00:00Z"}, {
                "completedIndexes": choice.choice(("0", "0-2", "2,1", "x"))}, {"uncountedTerminatedPods": {
                    "succeeded": ["a"], "failed": choice.choice(([], ["a"], ["b", "b"]))}}, {}))  # fmt: skip
        said.append(
            choice.choice(
                (
                    Request("PUT", path, dump(whole), unordered=True),
                    Request("PUT", path, dump({**head, "spec": other}), unordered=True),
                    Request("PATCH", path, dump({"spec": few}), choice.choice((MERGE, STRATEGIC)), unordered=True),
                    Request("PATCH", f"{path}?fieldManager=m&force=true", dump({**head, "spec": other}), APPLY,
                            unordered=True),
                    Request("PATCH", f"{path}/status", dump({"status": counts | more}),
                            choice.choice((MERGE, STRATEGIC)), unordered=True),
                )
            )
        )  # fmt: skip
        said.append(Request("GET", path, accept=choice.choice((JSON, _TABLE))))
    return [*said, Request("DELETE", f"{path}?propagationPolicy=Background")]


def scarcity(choice: random.Random, names: Any) -> list[Request]:
    """Quotas and limit ranges together: what one fills in, the other counts."""
    _, where, made = own_space(names.name)
    amounts = {"cpu": ("100m", "1", "2"), "memory": ("64Mi", "1Gi"), "ephemeral-storage": ("1Gi",)}

    def some() -> dict[str, str]:
        kinds = choice.sample(sorted(amounts), choice.randrange(1, 3))
        return {each: choice.choice(amounts[each]) for each in kinds}

    limit: dict[str, Any] = {"type": choice.choice(("Container", "Container", "Pod"))}
    limit |= {part: some() for part in choice.sample(("default", "defaultRequest", "max", "min"), 2)}
    hard = {each: choice.choice(("1", "2", "500m", "1Gi")) for each in choice.sample(
        ("requests.cpu", "limits.cpu", "requests.memory", "limits.memory", "pods", "cpu"), 2)}  # fmt: skip
    quota: dict[str, Any] = {"hard": hard}
    if choice.random() < 0.4:
        quota["scopes"] = [choice.choice(("BestEffort", "NotBestEffort", "Terminating", "NotTerminating"))]
    known = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    said = [
        made,
        Request("POST", f"{where}/limitranges", dump({"metadata": {"name": "l"}, "spec": {"limits": [limit]}}),
                unordered=True),
        Request("POST", f"{where}/resourcequotas", dump({"metadata": {"name": "q"}, "spec": quota}), unordered=True),
        Request("PATCH", f"{where}/resourcequotas/q/status", dump({"status": known}), MERGE, unordered=True),
    ]  # fmt: skip
    for number in range(4):
        resources = {part: some() for part in choice.sample(("requests", "limits"), choice.randrange(3))}
        container = {"name": "c", "image": "i", "resources": resources}
        spec: dict[str, Any] = {"containers": [container]}
        spec |= choice.choice(({}, {}, {"activeDeadlineSeconds": 5}, {"initContainers": [{**container, "name": "d"}]}))
        if choice.random() < 0.2:
            spec["overhead"] = {"cpu": "1"}
        said.append(Request("POST", f"{where}/pods", dump({"metadata": {"name": f"p{number}"}, "spec": spec}),
                            unordered=True))  # fmt: skip
        if choice.random() < 0.4:
            resized = {"spec": {"containers": [{"name": "c", "resources": {"requests": some()}}]}}
            said.append(Request("PATCH", f"{where}/pods/p{number}/resize", dump(resized), STRATEGIC, unordered=True))
        if choice.random() < 0.3:
            ended = {"status": {"phase": choice.choice(("Succeeded", "Failed"))}}
            said.append(Request("PATCH", f"{where}/pods/p{number}/status", dump(ended), MERGE))
        said.append(Request("GET", f"{where}/resourcequotas/q", accept=choice.choice((JSON, _TABLE))))
    return [*said, *(Request("DELETE", f"{where}/pods/p{number}?gracePeriodSeconds=0") for number in range(4))]
