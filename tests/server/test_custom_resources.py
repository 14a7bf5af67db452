"""Custom resources on a real server: from their definition to the last object's end."""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilothouse.testing.definitions import DEFINITIONS, await_condition

MERGE = {"Content-Type": "application/merge-patch+json"}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 0, "default": 1},
                "colour": {"type": "string"},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def version(name="v1", *, schema=SCHEMA, storage=True, **more):
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(group, *versions, plural="widgets", kind="Widget", **spec):
    names = {"plural": plural, "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions), **spec},
    }


def widget(group, name, at="v1", **spec):
    return {"apiVersion": f"{group}/{at}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def test_a_group_and_a_slash_are_no_version(server):
    group = "versionless.example.com"
    server.establish(definition(group, version()))
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    strict = server.call(
        "POST", f"{path}?fieldValidation=Strict", {**widget(group, "a", odd=1), "apiVersion": f"{group}/"}
    )
    assert strict[0] == 400
    assert strict[2]["message"] == "Object 'apiVersion' is missing in 'object has no apiVersion field'"
    nothing = server.call("POST", path, {**widget(group, "a"), "apiVersion": None})
    assert nothing[2]["message"] == (
        'Widget in version "" cannot be handled as a Widget: .apiVersion accessor error: <nil> is of the type <nil>, '
        "expected string"
    )
    kindless = server.call("POST", f"{path}?fieldValidation=Ignore", {**widget(group, "a", at="v9"), "kind": ""})
    assert kindless[2]["message"].startswith("Widget in version \"v9\" cannot be handled as a Widget: Object 'Kind'")
    alone = server.call("POST", path, {**widget(group, "a"), "apiVersion": "/"})
    assert alone[2]["message"].startswith("the API version in the data () does not match")
    odd = server.call("POST", f"{path}?dryRun=All", widget(group, "a", **{"a\u00a0b": 1}))
    assert odd[1]["warning"] == '299 - "unknown field \\"spec.a\u00a0b\\""'.encode().decode("latin-1")


def test_versions_with_schemas_of_their_own_share_what_is_stored(server):
    group = "several.example.com"

    def of(name, fields, **more):
        spec = {"type": "object", "properties": fields, **more}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": name == "v1", "schema": schema}

    text = {"type": "string"}
    first = of("v1", {"a": {**text, "default": "x"}, "b": text}) | {"selectableFields": [{"jsonPath": ".spec.a"}]}
    older = of("v1beta1", {"a": text, "old": {**text, "default": "o"}})
    older |= {"deprecated": True, "deprecationWarning": "use another"}
    free = of("v2", {}, **{"x-kubernetes-preserve-unknown-fields": True})
    server.establish(definition(group, first, older, free))
    at = f"/apis/{group}/{{}}/namespaces/default/widgets"

    # Defaults of the version that is stored are in what a dry run answers, and in what selectors see.
    for query in ("?dryRun=All", ""):
        made = server.call("POST", at.format("v2") + query, widget(group, "one", "v2", b="c"))[2]
        assert made["spec"] == {"a": "x", "b": "c"}
    found = server.call("GET", at.format("v1") + "?fieldSelector=spec.a=x")[2]
    assert [each["metadata"]["name"] for each in found["items"]] == ["one"]

    # An apply that changes nothing leaves the object as it is stored, without defaults of the version it came in.
    applied = widget(group, "one", "v1beta1")
    headers = {"Content-Type": "application/apply-patch+yaml"}
    answer = server.call("PATCH", at.format("v1beta1") + "/one?fieldManager=m", applied, headers)[2]
    assert (answer["spec"], answer["metadata"]["generation"]) == ({"a": "x"}, 1)

    # A patch that changes nothing loses what its version does not have.
    server.call("PATCH", at.format("v1beta1") + "/one", {}, MERGE)
    assert server.call("GET", at.format("v1") + "/one")[2]["spec"] == {"a": "x"}


def test_a_deprecated_version_warns_whatever_is_asked_of_it(server):
    group = "deprecated.example.com"
    server.establish(definition(group, version(deprecated=True, deprecationWarning="use another")))
    for method, below in (("GET", "/none/scale"), ("POST", "/none"), ("GET", "")):
        answer = server.call(
            method, f"/apis/{group}/v1/namespaces/default/widgets{below}", {} if method == "POST" else None
        )
        assert answer[1]["warning"] == '299 - "use another"', below


def test_the_life_of_a_custom_resource(server):
    group = "life.example.com"
    server.establish(definition(group, version(subresources={"status": {}})))
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    code, headers, made = server.call("POST", path, {**widget(group, "one", colour="red", odd=1), "status": {"x": 1}})
    assert code == 201
    assert 'unknown field \\"spec.odd\\"' in headers["warning"]
    assert made["spec"] == {"colour": "red", "size": 1}
    assert "status" not in made
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {".": {}, "f:colour": {}, "f:size": {}}}
    code, _, changed = server.call("PATCH", f"{path}/one/status", {"status": {"x": 2}, "spec": {"size": 9}}, MERGE)
    assert (code, changed["status"], changed["spec"]["size"], changed["metadata"]["generation"]) == (
        200,
        {"x": 2},
        1,
        1,
    )
    code, _, refused = server.call("PATCH", f"{path}/one", {"spec": {"size": -1, "tags": ["a", "a"]}}, MERGE)
    assert (code, [cause["field"] for cause in refused["details"]["causes"]]) == (422, ["spec.size", "spec.tags[1]"])
    code, _, listed = server.call("GET", path)
    assert (listed["kind"], listed["metadata"]["continue"], len(listed["items"])) == ("WidgetList", "", 1)
    assert listed["items"][0]["kind"] == "Widget"
    assert server.call("DELETE", f"{path}/one")[0] == 200
    assert server.call("GET", f"{path}/one")[0] == 404


def test_server_side_apply_merges_by_the_schema(server):
    group = "apply.example.com"
    server.establish(definition(group, version()))
    path = f"/apis/{group}/v1/namespaces/default/widgets/one"
    as_yaml = {"Content-Type": "application/apply-patch+yaml"}
    for manager, tags in (("a", ["x"]), ("b", ["y"])):
        code, _, _ = server.call("PATCH", f"{path}?fieldManager={manager}", widget(group, "one", tags=tags), as_yaml)
        assert code in (200, 201)
    assert server.call("GET", path)[2]["spec"]["tags"] == ["x", "y"]
    code, _, answer = server.call("PATCH", f"{path}?fieldManager=c", widget(group, "one", odd=1), as_yaml)
    assert (code, ".spec.odd: field not declared in schema" in answer["message"]) == (500, True)


def test_an_applied_null_that_is_valid_is_not_kept(server):
    group = "nulls.example.com"
    free = {"type": "object", "properties": {"a": {"x-kubernetes-preserve-unknown-fields": True}}}
    server.establish(definition(group, version(schema={"type": "object", "properties": {"spec": free}})))
    path = f"/apis/{group}/v1/namespaces/default/widgets/one"
    as_yaml = {"Content-Type": "application/apply-patch+yaml"}
    code, _, answer = server.call("PATCH", f"{path}?fieldManager=m", widget(group, "one", a=None), as_yaml)
    assert (code, answer["spec"], server.call("GET", path)[2]["spec"]) == (201, {}, {})


def test_several_who_apply_what_nobody_has_created_yet(server):
    """All but one find that it exists after all, and apply what they sent: nothing that a first attempt added to it."""
    group = "race.example.com"
    server.establish(definition(group, version()))
    as_yaml = {"Content-Type": "application/apply-patch+yaml"}
    for name in ("one", "two", "three"):
        path, start, codes = f"/apis/{group}/v1/namespaces/default/widgets/{name}", threading.Barrier(6), []

        def apply(manager, name=name, path=path, start=start, codes=codes):
            body = widget(group, name, tags=[manager])
            start.wait()
            codes.append(server.call("PATCH", f"{path}?fieldManager={manager}", body, as_yaml)[0])

        threads = [threading.Thread(target=apply, args=(f"m{number}",)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = server.call("GET", path)[2]
        assert sorted(codes) == [200] * 5 + [201]
        assert sorted(found["spec"]["tags"]) == [f"m{number}" for number in range(6)]
        for entry in found["metadata"]["managedFields"]:
            assert entry["fieldsV1"]["f:spec"] == {"f:tags": {f'v:"{entry["manager"]}"': {}}}


def test_versions_share_their_objects(server):
    group = "versions.example.com"
    old = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    beta = version("v1beta1", schema=old, storage=False, deprecated=True)
    server.establish(definition(group, version(), beta))
    path = f"/apis/{group}/%s/namespaces/default/widgets/one"
    server.call("POST", (path % "v1").rpartition("/")[0], widget(group, "one", colour="red"))
    code, headers, shown = server.call("GET", path % "v1beta1")
    assert (code, shown["apiVersion"], shown["spec"]) == (200, f"{group}/v1beta1", {"size": 1})
    assert "is deprecated; use versions.example.com/v1 Widget" in headers["warning"]
    assert server.call("PATCH", path % "v1beta1", {"spec": {"size": 5}}, MERGE)[0] == 200
    assert server.call("GET", path % "v1")[2]["spec"]["size"] == 5
    code, _, plain = server.call("GET", path % "v9")
    assert (code, plain) == (404, b"404 page not found\n")


def test_selectable_fields_and_tables(server):
    group = "select.example.com"
    columns = [{"name": "Colour", "type": "string", "jsonPath": ".spec.colour"}]
    fields = [{"jsonPath": ".spec.colour"}]
    server.establish(definition(group, version(additionalPrinterColumns=columns, selectableFields=fields)))
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    for name, colour in (("a", "red"), ("b", "blue")):
        server.call("POST", path, widget(group, name, colour=colour))
    _, _, found = server.call("GET", f"{path}?fieldSelector={quote('spec.colour=blue')}")
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]
    code, _, refused = server.call("GET", f"{path}?fieldSelector={quote('spec.size=1')}")
    assert (code, "field label not supported: spec.size" in refused["message"]) == (400, True)
    _, _, table = server.call("GET", path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert [row["cells"] for row in table["rows"]] == [["a", "red"], ["b", "blue"]]


def test_fields_of_any_name_are_selectable(server):
    group = "names.example.com"
    schema = {"type": "object", "properties": {"__class__": {"type": "string"}}}
    server.establish(definition(group, version(schema=schema, selectableFields=[{"jsonPath": ".__class__"}])))
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    for name in ("a", "b"):
        assert server.call("POST", path, {**widget(group, name), "__class__": name})[0] == 201
    _, _, found = server.call("GET", f"{path}?fieldSelector=__class__=b")
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]


def test_a_definition_waits_for_its_objects_to_go(server):
    group = "leaving.example.com"
    crd = definition(group, version())
    server.establish(crd)
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    held = widget(group, "held")
    held["metadata"]["finalizers"] = ["hold.example.com"]
    code, headers, _ = server.call("POST", path, held)
    assert (code, "prefer a domain-qualified finalizer name" in headers["warning"]) == (201, True)
    name = crd["metadata"]["name"]
    code, _, marked = server.call("DELETE", f"{DEFINITIONS}/{name}")
    assert (code, "deletionTimestamp" in marked["metadata"]) == (200, True)
    code, _, refused = server.call("POST", path, widget(group, "late"))
    assert (code, "create not allowed while custom resource definition is terminating" in refused["message"]) == (
        403,
        True,
    )
    await_condition(lambda: server.call("GET", f"{path}/held")[2], lambda obj: "deletionTimestamp" in obj["metadata"])
    server.call("PATCH", f"{path}/held", {"metadata": {"finalizers": None}}, MERGE)
    await_condition(lambda: server.call("GET", f"{DEFINITIONS}/{name}")[0], lambda code: code == 404)
    await_condition(lambda: server.call("GET", f"/apis/{group}")[0], lambda code: code == 404)
    server.establish(crd)
    assert server.call("GET", path)[2]["items"] == []


def test_definitions_and_objects_survive_a_restart(launch, tmp_path):
    group = "restart.example.com"
    first = launch(tmp_path / "data")
    first.establish(definition(group, version()))
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    assert first.call("POST", path, widget(group, "one", colour="red"))[0] == 201
    first.process.terminate()
    assert first.process.wait(120) == 0
    second = launch(tmp_path / "data")
    code, _, shown = second.call("GET", f"{path}/one")
    assert (code, shown["spec"]) == (200, {"colour": "red", "size": 1})
    assert second.call("GET", f"/apis/{group}")[0] == 200


def test_a_new_schema_applies_to_what_is_stored(server):
    group = "grow.example.com"
    server.establish(definition(group, version()))
    path = f"/apis/{group}/v1/namespaces/default/widgets/one"
    server.call("POST", path.rpartition("/")[0], widget(group, "one", colour="red"))
    grown = json.loads(json.dumps(SCHEMA))
    grown["properties"]["spec"]["properties"]["shape"] = {"type": "string", "default": "round"}
    del grown["properties"]["spec"]["properties"]["colour"]
    code, _, _ = server.call(
        "PATCH", f"{DEFINITIONS}/widgets.{group}", {"spec": {"versions": [version(schema=grown)]}}, MERGE
    )
    assert code == 200
    found = await_condition(lambda: server.call("GET", path)[2], lambda obj: "shape" in obj["spec"])
    assert found["spec"] == {"size": 1, "shape": "round"}


def test_openapi_and_discovery_follow(server):
    group = "shown.example.com"
    server.establish(definition(group, version()))
    _, _, resources = server.call("GET", f"/apis/{group}/v1")
    assert [item["name"] for item in resources["resources"]] == ["widgets"]
    code, _, document = server.call("GET", f"/openapi/v3/apis/{group}/v1")
    assert (code, "com.example.shown.v1.Widget" in document["components"]["schemas"]) == (200, True)
    assert group in [each["name"] for each in server.call("GET", "/apis")[2]["groups"]]
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    await_condition(lambda: server.call("GET", f"{services}/v1.{group}")[0], lambda code: code == 200)
    server.call("DELETE", f"{DEFINITIONS}/widgets.{group}")
    await_condition(lambda: server.call("GET", f"/openapi/v3/apis/{group}/v1")[0], lambda code: code == 404)
    await_condition(lambda: server.call("GET", f"{services}/v1.{group}")[0], lambda code: code == 404)


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"colour": "x" * (3 * 1024 * 1024)}, 413),
        ({"tags": [str(number) for number in range(100_000)]}, 201),
        ({"tags": ["same"] * 50_000}, 422),
    ],
)
def test_large_objects_end_quickly(server, spec, status):
    group = "large.example.com"
    if server.call("GET", f"/apis/{group}/v1/widgets")[0] != 200:
        server.establish(definition(group, version()))
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    assert server.call("POST", path, widget(group, f"big-{status}", **spec))[0] == status


def test_absurd_schemas_are_refused(server):
    deep = {"type": "string"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    body = json.dumps(definition("deep.example.com", version(schema=deep))).encode()
    assert server.call("POST", DEFINITIONS, body, {"Content-Type": "application/json"})[0] in (400, 422)
    bad = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a{1000}){1000}"}}}
    code, _, answer = server.call("POST", DEFINITIONS, definition("re.example.com", version(schema=bad)))
    assert (code, "must be a valid regular expression" in answer["message"]) == (422, True)


# Conversion by webhook


class Converter(BaseHTTPRequestHandler):
    """Moves ``spec.colour`` of v1 to ``spec.paint`` of v2 and back."""

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        request = review["request"]
        converted = []
        for obj in request["objects"]:
            names = ("colour", "paint") if request["desiredAPIVersion"].endswith("v2") else ("paint", "colour")
            spec = {names[1] if key == names[0] else key: value for key, value in obj.get("spec", {}).items()}
            converted.append({**obj, "apiVersion": request["desiredAPIVersion"], "spec": spec})
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        if any(obj["metadata"]["name"] == "refused" for obj in request["objects"]):
            response = {"uid": request["uid"], "result": {"status": "Failure", "message": "I will not"}}
        body = json.dumps(
            {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Say nothing."""


@pytest.fixture
def webhook(tmp_path):
    """A TLS server that converts: its URL and its authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "converter")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "webhook.pem"
    file.write_bytes(pem + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    running = ThreadingHTTPServer(("127.0.0.1", 0), Converter)
    running.socket = context.wrap_socket(running.socket, server_side=True)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{running.server_address[1]}/convert", base64.b64encode(pem).decode()
    running.shutdown()
    thread.join()
    running.server_close()


def test_conversion_by_webhook(server, webhook):
    group = "convert.example.com"
    url, authority = webhook
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    client = {"url": url, "caBundle": authority}
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}
    versions = [version(schema=open_schema), version("v2", schema=open_schema, storage=False)]
    server.establish(definition(group, *versions, conversion=conversion))
    first = f"/apis/{group}/v1/namespaces/default/widgets"
    second = f"/apis/{group}/v2/namespaces/default/widgets"
    assert server.call("POST", first, widget(group, "one", colour="red"))[0] == 201
    code, _, shown = server.call("GET", f"{second}/one")
    assert (code, shown["apiVersion"], shown["spec"]) == (200, f"{group}/v2", {"paint": "red"})
    code, _, made = server.call("POST", second, widget(group, "two", "v2", paint="blue"))
    assert (code, made["spec"]) == (201, {"paint": "blue"})
    assert server.call("GET", f"{first}/two")[2]["spec"] == {"colour": "blue"}
    code, _, changed = server.call("PATCH", f"{second}/two", {"spec": {"paint": "green"}}, MERGE)
    assert (code, changed["spec"]) == (200, {"paint": "green"})
    _, _, listed = server.call("GET", second)
    assert [item["spec"]["paint"] for item in listed["items"]] == ["red", "green"]
    code, _, failed = server.call("POST", second, widget(group, "refused", "v2"))
    assert (code, failed["message"]) == (500, f"conversion webhook for {group}/v2, Kind=Widget failed: I will not")
    assert server.call("DELETE", f"{second}/one")[0] == 200


UNREACHABLE = {
    "strategy": "Webhook",
    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}},
}


def unconvertible(group, number=1):
    key = f"/registry/{group}/widgets/default/one"
    why = (
        f"conversion webhook for {group}/v1, Kind=Widget failed: "
        'Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused'
    )
    undecodable = f"object not decodable revision=N: {why}"
    read = f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {undecodable}"
    more = f" (and {number - 1} more)" if number > 1 else ""
    return undecodable, f"failed to read one or more widgets.{group} from the storage: {read}{more}"


def told(answer):
    code, _, status = answer
    return code, status.get("reason", ""), re.sub(r"revision=\d+", "revision=N", status["message"])


def test_nothing_is_listed_before_all_could_be_converted(server):
    group = "broken.example.com"
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [version(schema=open_schema), version("v2", schema=open_schema, storage=False)]
    server.establish(definition(group, *versions))
    first, second = (f"/apis/{group}/{name}/namespaces/default/widgets" for name in ("v1", "v2"))
    for name in ("one", "two"):
        assert server.call("POST", first, widget(group, name, colour="red"))[0] == 201
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
    assert server.call("PATCH", crd, {"spec": {"conversion": UNREACHABLE}}, MERGE)[0] == 200
    while server.call("GET", f"{second}/one")[0] == 200:
        pass
    undecodable, unreadable = unconvertible(group, 2)
    refused = (429, "TooManyRequests", f"storage is (re)initializing: failed to list <unspecified>: {unreadable}")
    for query in ("", "?resourceVersion=0", "?watch=1", "?watch=1&resourceVersion=1", "?limit=1&labelSelector=a"):
        answer = server.call("GET", second + query)
        assert told(answer) == refused, query
        assert answer[2]["details"] == {"retryAfterSeconds": 1}
    one = unconvertible(group)[1]
    assert told(server.call("GET", f"{second}?limit=1")) == (500, "StorageReadError", one)
    assert told(server.call("PATCH", f"{second}/one", {"a": 1}, MERGE)) == (500, "", undecodable)
    assert told(server.call("DELETE", f"{second}?dryRun=All")) == (500, "StorageReadError", unreadable)
    assert len(server.call("GET", first)[2]["items"]) == 2
    assert server.call("PATCH", crd, {"spec": {"conversion": {"strategy": "None", "webhook": None}}}, MERGE)[0] == 200
    while server.call("GET", second)[0] != 200:
        pass


def test_what_cannot_be_converted_after_others_could_fails_alone(server):
    group = "breaking.example.com"
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [version(schema=open_schema), version("v2", schema=open_schema, storage=False)]
    server.establish(definition(group, *versions, conversion=UNREACHABLE))
    first, second = (f"/apis/{group}/{name}/namespaces/default/widgets" for name in ("v1", "v2"))
    assert server.call("POST", first, widget(group, "one", colour="red"))[0] == 201
    assert told(server.call("GET", second)) == (500, "StorageReadError", unconvertible(group)[1])


# Clients


def test_kubectl(kubectl, server):
    group = "kubectl.example.com"
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    columns = [{"name": "Colour", "type": "string", "jsonPath": ".spec.colour"}]
    crd = definition(group, version(subresources={"status": {}, "scale": scale}, additionalPrinterColumns=columns))
    kubectl("create", "-f", "-", stdin=json.dumps(crd))
    kubectl("wait", "--for=condition=established", f"crd/{crd['metadata']['name']}", "--timeout=120s")
    kubectl("apply", "-f", "-", stdin=json.dumps(widget(group, "one", colour="red")))
    resource = f"widgets.{group}"
    assert kubectl("get", resource, "-o", "wide").split()[-2:] == ["one", "red"]
    kubectl("scale", "--replicas=4", f"{resource}/one")
    assert kubectl("get", resource, "one", "-o", "jsonpath={.spec.size}") == "4"
    assert "colour\t<string>" in kubectl("explain", "widgets.spec", f"--api-version={group}/v1")
    refused = kubectl("patch", resource, "one", "--type=merge", "-p", '{"spec":{"size":"x"}}', fails=True)
    assert 'must be of type integer: "string"' in refused
    kubectl("delete", "crd", crd["metadata"]["name"])


def test_fields_are_selected_in_the_version_that_is_asked_for(server, webhook):
    group = "chosen.example.com"
    url, authority = webhook
    client = {"url": url, "caBundle": authority}
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}

    def schema(field):
        spec = {"type": "object", "properties": {field: {"type": "string"}}}
        return {"type": "object", "properties": {"spec": spec}}

    first = version(schema=schema("colour"), selectableFields=[{"jsonPath": ".spec.colour"}])
    second = version("v2", schema=schema("paint"), storage=False, selectableFields=[{"jsonPath": ".spec.paint"}])
    server.establish(definition(group, first, second, conversion=conversion))
    path = f"/apis/{group}/v2/namespaces/default/widgets"
    for name, paint in (("one", "red"), ("two", "blue")):
        assert server.call("POST", path, widget(group, name, "v2", paint=paint))[0] == 201
    _, _, listed = server.call("GET", f"{path}?fieldSelector=spec.paint%3Dred")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["one"]
    _, _, listed = server.call("GET", f"{path}?fieldSelector=spec.paint!%3Dred&limit=1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["two"]
    _, _, listed = server.call("GET", f"/apis/{group}/v1/namespaces/default/widgets?fieldSelector=spec.colour%3Dred")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["one"]
    start = listed["metadata"]["resourceVersion"]
    server.call("PATCH", f"{path}/two", {"spec": {"paint": "red"}}, MERGE)
    server.call("PATCH", f"{path}/two", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    server.call("PATCH", f"{path}/one", {"spec": {"paint": "green"}}, MERGE)
    server.call("DELETE", f"{path}/one")
    server.call("DELETE", f"{path}/two")
    watch = f"{path}?watch=1&timeoutSeconds=1&resourceVersion={start}&fieldSelector=spec.paint%3Dred"
    connection = HTTPSConnection("127.0.0.1", server.port, context=server.tls())
    connection.request("GET", watch)
    events = [json.loads(line) for line in connection.getresponse().read().splitlines()]
    connection.close()
    assert [(e["type"], e["object"]["metadata"]["name"], e["object"]["spec"]) for e in events] == [
        ("ADDED", "two", {"paint": "red"}),
        ("MODIFIED", "two", {"paint": "red"}),
        ("DELETED", "one", {"paint": "red"}),
        ("DELETED", "two", {"paint": "red"}),
    ]


def test_a_definition_that_is_not_the_one_that_was_meant(server):
    group = "meant.example.com"
    made = server.establish(definition(group, version()))
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
    code, _, refused = server.call("DELETE", path, {"preconditions": {"uid": "x"}})
    uid = made["metadata"]["uid"]
    why = f"precondition failed: UID in precondition: x, UID in object meta: {uid}"
    what = f'customresourcedefinitions.apiextensions.k8s.io "widgets.{group}"'
    assert (code, refused["message"]) == (409, f"Operation cannot be fulfilled on {what}: {why}")
    assert server.call("GET", "/apis//v1/widgets")[2] == b"404 page not found\n"


def test_what_is_dropped_of_a_status_update_and_does_not_fit(server):
    """The rest is stored, and nobody owns what was changed, as in kube-apiserver."""
    group = "dropped.example.com"
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}  # fmt: skip
    server.establish(definition(group, version(schema=schema, subresources={"status": {}})))
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    made = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1}}
    _, _, before = server.call("POST", path, made)
    body = {**made, "spec": ["a"], "status": {"phase": "On"}}
    body["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
    code, _, after = server.call("PUT", f"{path}/one/status", body)
    assert (code, after["spec"], after["status"]) == (200, {"size": 1}, {"phase": "On"})
    assert after["metadata"]["managedFields"] == before["metadata"]["managedFields"]
    _, _, after = server.call("PATCH", f"{path}/one/status", {"status": {"phase": "Off"}}, MERGE)
    assert [entry.get("subresource") for entry in after["metadata"]["managedFields"]] == [None, "status"]


@pytest.mark.parametrize(
    ("group", "plural", "kind", "kept"),
    [
        ("apiregistration.k8s.io", "apiservices", "APIService", "/apis/apiregistration.k8s.io/v1/apiservices"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", DEFINITIONS),
    ],
)
def test_a_definition_that_is_stored_where_built_in_objects_are(server, group, plural, kind, kept):
    server.establish(definition(f"{plural}.kept.example.com", version()))
    before = {item["metadata"]["uid"] for item in server.call("GET", kept)[2]["items"]}
    crd = definition(group, version(), plural=plural, kind=kind, scope="Cluster")
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/1"}
    assert server.call("POST", DEFINITIONS, crd)[0] == 201
    path = f"{DEFINITIONS}/{crd['metadata']['name']}"
    established = {"type": "Established", "status": "True"}
    await_condition(
        lambda: server.call("GET", path)[2],
        lambda obj: established in [{k: c[k] for k in established} for c in obj["status"].get("conditions") or ()],
    )
    assert before <= {item["metadata"]["uid"] for item in server.call("GET", kept)[2]["items"]}
    assert server.call("DELETE", path)[0] == 200
    await_condition(lambda: server.call("GET", path)[0], lambda code: code == 404)
    assert before <= {item["metadata"]["uid"] for item in server.call("GET", kept)[2]["items"]}


def test_names_of_a_definition_that_is_going(server):
    group = "renamed.example.com"
    crd = server.establish(definition(group, version()))
    held = widget(group, "held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    path = f"{DEFINITIONS}/{crd['metadata']['name']}"
    assert server.call("POST", f"/apis/{group}/v1/namespaces/default/widgets", held)[0] == 201
    assert server.call("DELETE", path)[0] == 200
    assert server.call("PATCH", path, {"spec": {"names": {"shortNames": ["wd"]}}}, MERGE)[0] == 200
    await_condition(
        lambda: server.call("GET", path)[2], lambda obj: obj["status"]["acceptedNames"].get("shortNames") == ["wd"]
    )


@pytest.mark.parametrize("at", ["v1", "v2"])
def test_a_definition_in_the_group_of_definitions(server, at):
    """It is accepted and not served: everything below the group belongs to definitions."""
    crd = definition("apiextensions.k8s.io", version(at), plural=f"{at}s", kind=f"Other{at.upper()}")
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/1"}
    assert server.call("POST", DEFINITIONS, crd)[0] == 201
    path = f"{DEFINITIONS}/{crd['metadata']['name']}"
    await_condition(
        lambda: server.call("GET", path), lambda found: len(found[2]["status"].get("conditions") or ()) == 3
    )
    assert server.call("GET", f"/apis/apiextensions.k8s.io/{at}/{at}s")[0] == 404
    assert server.call("DELETE", path)[0] == 200
    await_condition(lambda: server.call("GET", path)[0], lambda code: code == 404)


@pytest.mark.parametrize("policy", ["Orphan", "Foreground", "Background"])
def test_how_dependents_of_a_definition_are_to_go_is_not_minded(server, policy):
    name = f"widgets.{policy.lower()}.example.com"
    assert server.call("POST", DEFINITIONS, definition(name.partition(".")[2], version()))[0] == 201
    _, _, marked = server.call("DELETE", f"{DEFINITIONS}/{name}?propagationPolicy={policy}&dryRun=All")
    assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert server.call("DELETE", f"{DEFINITIONS}/{name}?propagationPolicy={policy}")[0] == 200
    await_condition(lambda: server.call("GET", f"{DEFINITIONS}/{name}")[0], lambda code: code == 404)
