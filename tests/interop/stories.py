"""Stories that are told to a cluster, and what is left of a cluster when they are over, without what is random.

A story is a function of a `Teller`: it writes objects into a namespace of its own, waits for what the cluster makes of
them, and goes on. What is left are the objects of the namespace and the events, with names, addresses and times that no
two clusters share replaced by marks.
"""

import re
import time

PATIENCE_SECONDS = 90.0
KEPT = (
    ("apps/v1", "deployments"),
    ("apps/v1", "replicasets"),
    ("apps/v1", "statefulsets"),
    ("apps/v1", "daemonsets"),
    ("apps/v1", "controllerrevisions"),
    ("batch/v1", "jobs"),
    ("batch/v1", "cronjobs"),
    ("policy/v1", "poddisruptionbudgets"),
    ("discovery.k8s.io/v1", "endpointslices"),
    ("v1", "endpoints"),
    ("v1", "persistentvolumeclaims"),
    ("v1", "pods"),
    ("v1", "resourcequotas"),
    ("v1", "serviceaccounts"),
    ("v1", "configmaps"),
)


class Teller:
    """Talks to a server about one namespace."""

    def __init__(self, server, namespace):
        self.server, self.namespace = server, namespace
        self.until_nodes_are_ready()
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.until("v1", "serviceaccounts", "default", bool)
        self.until("v1", "configmaps", "kube-root-ca.crt", bool)

    def path(self, version, resource, name="", subresource=""):
        root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        parts = [root, "namespaces", self.namespace, resource, name, subresource]
        return "/".join(part for part in parts if part)

    def create(self, version, kind, resource, name, spec, **metadata):
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
        return self.done("POST", self.path(version, resource), body)

    def done(self, method, path, body=None, content_type="application/json"):
        status, answer = self.server.call(method, path, body, content_type)
        assert status < 300, (method, path, status, answer)
        return answer

    def patch(self, version, resource, name, body, subresource=""):
        path = self.path(version, resource, name, subresource)
        return self.done("PATCH", path, body, "application/strategic-merge-patch+json")

    def delete(self, version, resource, name, **options):
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        return self.done("DELETE", self.path(version, resource, name), body)

    def get(self, version, resource, name):
        status, answer = self.server.call("GET", self.path(version, resource, name))
        return answer if status == 200 else None

    def list(self, version, resource):
        return self.done("GET", self.path(version, resource))["items"]

    def until(self, version, resource, name, test):
        """Wait until an object meets a test; `None` is tested when there is none."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self.get(version, resource, name)
            if found is not None and test(found):
                return found
            assert time.monotonic() < deadline, (resource, name, found)
            time.sleep(0.05)

    def until_nodes_are_ready(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(
            node["spec"].get("taints") or not node["spec"].get("podCIDR")
            for node in self.done("GET", "/api/v1/nodes")["items"]
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def until_gone(self, version, resource, name):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.get(version, resource, name) is not None:
            assert time.monotonic() < deadline, (resource, name)
            time.sleep(0.05)

    def until_pods(self, test):
        self.until_all("v1", "pods", test, lambda pod: pod["status"])

    def until_told(self, name, reason):
        """Wait until an event says so about an object, or about one whose name begins like this."""
        says = lambda event: event["reason"] == reason and event["involvedObject"]["name"].startswith(name)  # noqa: E731
        self.until_all("v1", "events", lambda found: any(map(says, found)), lambda event: event["reason"])

    def until_all(self, version, resource, test, shown=lambda obj: obj):
        """Wait until the objects of a resource meet a test."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not test(found := self.list(version, resource)):
            assert time.monotonic() < deadline, [(obj["metadata"]["name"], shown(obj)) for obj in found]
            time.sleep(0.05)


def pod_template(labels, image="nginx", **spec):
    container = {"name": "c", "image": image, **spec.pop("container", {})}
    return {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def workload(labels, **spec):
    return {"selector": {"matchLabels": labels}, "template": pod_template(labels), **spec}


def is_rolled_out(count):
    def test(found):
        status = found.get("status") or {}
        counts = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        return counts == [count] * 3 and status.get("observedGeneration") == found["metadata"]["generation"]

    return test


def image_patch(image):
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}


def roll_out_and_back(teller):
    labels = {"app": "web"}
    teller.create("apps/v1", "Deployment", "deployments", "web", workload(labels, replicas=3))
    spec = {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}
    teller.create("v1", "Service", "services", "web", spec)
    teller.until("apps/v1", "deployments", "web", is_rolled_out(3))
    teller.patch("apps/v1", "deployments", "web", image_patch("nginx:2"))
    teller.until("apps/v1", "deployments", "web", is_rolled_out(3))
    teller.patch("apps/v1", "deployments", "web", image_patch("nginx"))
    teller.until("apps/v1", "deployments", "web", is_rolled_out(3))
    teller.until_all("discovery.k8s.io/v1", "endpointslices", have_ready_endpoints(3))


def have_ready_endpoints(count):
    """Slices are written behind the pods: those that end are in them a little longer."""

    def test(slices):
        endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or ()]
        return len(endpoints) == count and all(endpoint["conditions"]["ready"] for endpoint in endpoints)

    return test


def scale(teller):
    labels = {"app": "web"}
    teller.create("apps/v1", "Deployment", "deployments", "web", workload(labels, replicas=1))
    teller.until("apps/v1", "deployments", "web", is_rolled_out(1))
    for count in (5, 2, 0):
        teller.patch("apps/v1", "deployments", "web", {"spec": {"replicas": count}})
        if count:
            teller.until("apps/v1", "deployments", "web", is_rolled_out(count))
    teller.until_pods(lambda pods: not pods)
    teller.until("apps/v1", "deployments", "web", lambda found: not found["status"].get("replicas"))


def never_available(teller):
    labels = {"app": "web"}
    template = pod_template(labels, "invalid.example/none:404")
    spec = {**workload(labels, replicas=1, progressDeadlineSeconds=3), "template": template}
    teller.create("apps/v1", "Deployment", "deployments", "web", spec)
    teller.until(
        "apps/v1",
        "deployments",
        "web",
        lambda found: any(
            each.get("reason") == "ProgressDeadlineExceeded"
            for each in (found.get("status") or {}).get("conditions", ())
        ),
    )


def drain(teller):
    """Evictions within a budget: the second has to wait until the first pod has been replaced."""
    labels = {"app": "web"}
    teller.create("apps/v1", "ReplicaSet", "replicasets", "web", workload(labels, replicas=2))
    budget = {"selector": {"matchLabels": labels}, "minAvailable": 1}
    teller.create("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "web", budget)
    allows = lambda count: lambda found: (found.get("status") or {}).get("disruptionsAllowed") == count  # noqa: E731
    teller.until("policy/v1", "poddisruptionbudgets", "web", allows(1))
    for pod in teller.list("v1", "pods"):
        name = pod["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while teller.server.call("POST", teller.path("v1", "pods", name, "eviction"), eviction)[0] == 429:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        teller.until_gone("v1", "pods", name)
    teller.until("policy/v1", "poddisruptionbudgets", "web", allows(1))


def quota(teller):
    hard = {"pods": "2", "requests.cpu": "1", "count/configmaps": "5"}
    teller.create("v1", "ResourceQuota", "resourcequotas", "q", {"hard": hard})
    teller.until("v1", "resourcequotas", "q", lambda found: (found.get("status") or {}).get("used"))
    labels = {"app": "web"}
    template = pod_template(labels, container={"resources": {"requests": {"cpu": "100m"}}})
    teller.create("apps/v1", "ReplicaSet", "replicasets", "web", {**workload(labels, replicas=3), "template": template})
    teller.until("v1", "resourcequotas", "q", lambda found: found["status"]["used"].get("pods") == "2")
    teller.until(
        "apps/v1",
        "replicasets",
        "web",
        lambda found: (
            any(each["type"] == "ReplicaFailure" for each in (found.get("status") or {}).get("conditions", ()))
            and found["status"].get("readyReplicas") == 2
        ),
    )


def has_condition(kind):
    return lambda found: any(
        each["type"] == kind and each["status"] == "True" for each in (found.get("status") or {}).get("conditions", ())
    )


def job_with_failures(teller):
    for name, command, limit in (("bad", "exit 1", 1), ("good", "exit 0", 6)):
        template = pod_template({"job": name}, container={"command": ["sh", "-c", command]}, restartPolicy="Never")
        spec = {"template": template, "completions": 2, "parallelism": 2, "backoffLimit": limit}
        teller.create("batch/v1", "Job", "jobs", name, spec)
    teller.until("batch/v1", "jobs", "bad", has_condition("Failed"))
    teller.until("batch/v1", "jobs", "good", has_condition("Complete"))
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    template = pod_template({"job": "ruled"}, container={"command": ["sh", "-c", "exit 42"]}, restartPolicy="Never")
    teller.create("batch/v1", "Job", "jobs", "ruled", {"template": template, "podFailurePolicy": {"rules": [rule]}})
    teller.until("batch/v1", "jobs", "ruled", has_condition("Failed"))
    template = pod_template({"job": "indexed"}, container={"command": ["true"]}, restartPolicy="Never")
    spec = {"template": template, "completions": 3, "parallelism": 3, "completionMode": "Indexed"}
    teller.create("batch/v1", "Job", "jobs", "indexed", spec)
    teller.until("batch/v1", "jobs", "indexed", has_condition("Complete"))
    # What happened is told later than it is written into the object.
    for name, reason in (("good", "Completed"), ("indexed", "Completed"), ("ruled-", "Started")):
        teller.until_told(name, reason)


def foreground_delete(teller):
    labels = {"app": "web"}
    for name in ("foreground", "orphan"):
        own = {"app": name}
        teller.create("apps/v1", "Deployment", "deployments", name, workload(own, replicas=2))
        teller.until("apps/v1", "deployments", name, is_rolled_out(2))
    teller.create("apps/v1", "ReplicaSet", "replicasets", "stays", workload(labels, replicas=1))
    teller.until("apps/v1", "replicasets", "stays", lambda found: (found.get("status") or {}).get("readyReplicas") == 1)
    teller.delete("apps/v1", "deployments", "foreground", propagationPolicy="Foreground")
    teller.delete("apps/v1", "deployments", "orphan", propagationPolicy="Orphan")
    for name in ("foreground", "orphan"):
        teller.until_gone("apps/v1", "deployments", name)
    teller.until_pods(lambda pods: len(pods) == 3)


def stateful_set_update(teller):
    labels = {"app": "db"}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none",
    }
    templates = [{"metadata": {"name": "data"}, "spec": claim}]
    spec = {**workload(labels, replicas=3, serviceName="db"), "podManagementPolicy": "OrderedReady"}
    teller.create("apps/v1", "StatefulSet", "statefulsets", "db", spec)
    ready = lambda count: (  # noqa: E731
        lambda found: (
            [(found.get("status") or {}).get(name) for name in ("readyReplicas", "updatedReplicas", "replicas")]
            == [count] * 3
            and found["status"].get("observedGeneration") == found["metadata"]["generation"]
            and found["status"]["currentRevision"] == found["status"]["updateRevision"]
        )
    )
    teller.until("apps/v1", "statefulsets", "db", ready(3))
    teller.patch("apps/v1", "statefulsets", "db", image_patch("nginx:2"))
    teller.until("apps/v1", "statefulsets", "db", ready(3))
    spec = {**workload({"app": "waits"}, replicas=1, serviceName="db"), "volumeClaimTemplates": templates}
    teller.create("apps/v1", "StatefulSet", "statefulsets", "waits", spec)
    teller.until("v1", "persistentvolumeclaims", "data-waits-0", bool)
    teller.until_pods(
        lambda pods: any(
            pod["metadata"]["name"] == "waits-0" and has_condition_false(pod, "PodScheduled") for pod in pods
        )
    )
    counted = lambda found: (found.get("status") or {}).get("updatedReplicas") == 1  # noqa: E731
    teller.until("apps/v1", "statefulsets", "waits", counted)


def has_condition_false(pod, kind):
    return any(each["type"] == kind and each["status"] == "False" for each in pod["status"].get("conditions", ()))


def preemption(teller):
    for name, value in (("low", 10), ("high", 1000)):
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        status, _ = teller.server.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
        assert status in (201, 409)

    def pod(name, priority, cpu, **more):
        requests = {"resources": {"requests": {"cpu": cpu}}}
        template = pod_template({"app": name}, container=requests, priorityClassName=priority, **more)
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": template["spec"]}
        teller.done("POST", teller.path("v1", "pods"), body)

    running = lambda found: found["status"].get("phase") == "Running"  # noqa: E731
    here = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}
    pod("victim", "low", "10", **here)
    teller.until("v1", "pods", "victim", running)
    pod("winner", "high", "10", **here)
    teller.until("v1", "pods", "winner", running)
    pod("hopeless", "high", "1000")
    teller.until("v1", "pods", "hopeless", lambda found: has_condition_false(found, "PodScheduled"))
    pod("nowhere", "low", "1", nodeSelector={"no": "such"})
    teller.until("v1", "pods", "nowhere", lambda found: has_condition_false(found, "PodScheduled"))
    teller.delete("v1", "pods", "winner")
    teller.until_gone("v1", "pods", "winner")


STORIES = (
    roll_out_and_back,
    scale,
    never_available,
    drain,
    quota,
    job_with_failures,
    foreground_delete,
    stateful_set_update,
    preemption,
)

# What is left

_TIMES = re.compile(r"(Time|Timestamp|timestamp|edAt)$")
_RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
_IN_TEXT = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_HASH = re.compile(r"\b(web|orphan|foreground|db|waits)-(?=[0-9a-z]*\d)[0-9a-z]{8,10}\b")
"""Hashes of templates are made in another way here: they are names and nothing more."""
_NODE = re.compile(r"\bnode-\d+\b")
_SECONDS = re.compile(r"\b\d+(?:\.\d+)?(?:ms|s)\b")
_DROPPED = frozenset(("uid", "resourceVersion", "selfLink", "containerID", "imageID", "lastHeartbeatTime"))


def text_of(value):
    """A text without what is random."""
    for pattern, mark in ((_UID, "UID"), (_ADDRESS, "IP"), (_NODE, "NODE"), (_HASH, r"\1-HASH"), (_IN_TEXT, "-#")):
        value = pattern.sub(mark, value)
    return value


def _owns_times_alone(fields):
    """Who set a time last keeps it if the next one sets it within the same second, which is a matter of timing."""
    leaves = []

    def visit(fields):
        for name, below in fields.items():
            if below:
                visit(below)
            elif name != ".":
                leaves.append(name)

    visit(fields)
    return bool(leaves) and all(_TIMES.search(name) for name in leaves)


def plain(value, key=""):
    """A value without what is random."""
    if isinstance(value, dict):
        return {name: plain(each, name) for name, each in sorted(value.items()) if name not in _DROPPED}
    if key == "managedFields":
        owners = [each for each in value if not _owns_times_alone(each["fieldsV1"])]
        return sorted({(each["manager"], each["operation"], each.get("subresource", "")) for each in owners})
    if isinstance(value, list):
        return [plain(each, key) for each in value]
    if isinstance(value, str):
        if key in ("pod-template-hash", "controller-revision-hash", "ca.crt"):
            return key.upper()
        return "TIME" if _TIMES.search(key) else text_of(value)
    return value


def remains(teller):
    """The objects of the namespace as (resource, name) -> list, since names may be the same once plain."""
    found = {}
    for version, resource in KEPT:
        for obj in teller.list(version, resource):
            shown = plain(obj)
            if resource == "endpointslices":
                del shown["metadata"]["generation"]  # how often it was written is a matter of timing
            found.setdefault((resource, shown["metadata"]["name"]), []).append(shown)
    for objects in found.values():
        objects.sort(key=repr)
    return found


def events(teller):
    """What was told, as (kind, name, type, reason, message, component) in the order in which it was told first."""
    listed = sorted(teller.list("v1", "events"), key=lambda event: int(event["metadata"]["resourceVersion"]))
    told = []
    for event in listed:
        about = event["involvedObject"]
        component = (event.get("source") or {}).get("component") or event.get("reportingComponent", "")
        entry = (
            about["kind"],
            text_of(about["name"]),
            event["type"],
            event["reason"],
            _SECONDS.sub("SECONDS", text_of(event.get("message", ""))),
            component,
        )
        if entry not in told:
            told.append(entry)
    return told
