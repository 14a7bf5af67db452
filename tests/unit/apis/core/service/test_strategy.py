"""Services, without allocation, and Endpoints."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilothouse.apis.core.service.fields import default_stored, drop_unneeded, normalize_cluster_ips, patch_allocated

PORT: dict[str, Any] = {"port": 80}


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": {"ports": [PORT], **fields}}


def test_defaults(kind: Any) -> None:
    made = kind("v1", "services").create(spec())
    assert made["spec"] == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
        "internalTrafficPolicy": "Cluster",
    }
    assert made["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"sessionAffinity": "ClientIP"}, {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}}),
        ({"sessionAffinity": "None", "sessionAffinityConfig": {"clientIP": {}}}, {"sessionAffinityConfig": None}),
        ({"type": "NodePort"}, {"externalTrafficPolicy": "Cluster"}),
        ({"type": "LoadBalancer"}, {"allocateLoadBalancerNodePorts": True, "externalTrafficPolicy": "Cluster"}),
        ({"externalIPs": ["203.0.113.1"]}, {"externalTrafficPolicy": "Cluster"}),
        ({"type": "ExternalName", "externalName": "a.b"}, {"internalTrafficPolicy": None}),
        ({"type": "ExternalName", "externalName": "a.b", "clusterIP": "None"}, {"clusterIPs": ["None"]}),
    ],
)
def test_defaults_by_type(kind: Any, fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    made = kind("v1", "services").create(spec(**fields))
    assert {key: made["spec"].get(key) for key in wanted} == wanted


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"ports": None}, ["spec.ports: Required value"]),
        (
            {"type": "ExternalName", "externalName": "h.example", "ipFamilyPolicy": ""},
            ["spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services"],
        ),
        ({"ports": [{"port": 0}]}, 2),
        (
            {"ports": [{"port": 80}, {"port": 80}]},
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1].name: Required value",
                'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,'
                '"TargetPort":0,"NodePort":0}',
            ],
        ),
        (
            {"ports": [{"port": 80, "nodePort": 30000}]},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            {"type": "Odd"},
            [
                'spec.type: Unsupported value: "Odd": '
                'supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
            ],
        ),
        ({"type": "ExternalName"}, ["spec.externalName: Required value"]),
        ({"type": "ExternalName", "externalName": "a.b."}, []),
        (
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]},
            ['spec.clusterIPs: Invalid value: ["10.0.0.2"]: first value must match `clusterIP`'],
        ),
        (
            {"clusterIP": "None", "clusterIPs": ["None"], "type": "NodePort"},
            ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
        ),
        (
            {"externalIPs": ["127.0.0.1"]},
            [
                'spec.externalIPs[0]: Invalid value: "127.0.0.1": '
                "may not be in the loopback range (127.0.0.0/8, ::1/128)"
            ],
        ),
        (
            {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
            ["spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        ),
        ({"type": "LoadBalancer", "loadBalancerSourceRanges": [" 10.0.0.0/8 "]}, []),
        (
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
            ["spec.healthCheckNodePort: Required value"],
        ),
        (
            {"healthCheckNodePort": 31000},
            [
                "spec.healthCheckNodePort: Invalid value: 31000: "
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            ],
        ),
        (
            {"trafficDistribution": "Far"},
            [
                'spec.trafficDistribution: Unsupported value: "Far": '
                'supported values: "PreferClose", "PreferSameZone", "PreferSameNode"'
            ],
        ),
        (
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
            [
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: "
                "must be greater than 0 and less than 86400"
            ],
        ),
        (
            {"ipFamilies": ["IPv4", "IPv4", "IPv5"]},
            [
                'spec.ipFamilies[1]: Duplicate value: "IPv4"',
                'spec.ipFamilies[2]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"',
            ],
        ),
        (
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]},
            [
                'spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: '
                "may specify no more than one IP for each IP family"
            ],
        ),
        (
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv6"]},
            ['spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`'],
        ),
    ],
)
def test_errors(kind: Any, fields: dict[str, Any], wanted: Any) -> None:
    body = spec(**fields)
    body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
    found = kind("v1", "services").errors(body)
    assert (len(found) if isinstance(wanted, int) else found) == wanted


def stored_service(kind: Any, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = kind("v1", "services").create(
        spec(clusterIP="10.0.0.9", clusterIPs=["10.0.0.9"], ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack", **fields)
    )
    return made


def test_a_class_stays_and_is_shown_as_json(kind: Any) -> None:
    balanced = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": True}
    stored = stored_service(kind, **balanced, loadBalancerClass="a.b/c")
    errs = kind("v1", "services").errors({"spec": {"loadBalancerClass": "a>b"}}, stored)
    assert errs[0] == 'spec.loadBalancerClass: Invalid value: "a\\u003eb": may not change once set'


def test_addresses_stay(kind: Any) -> None:
    stored = stored_service(kind)
    services = kind("v1", "services")
    other = {"clusterIP": "10.0.0.8", "clusterIPs": ["10.0.0.8"]}
    why = 'spec.clusterIPs[0]: Invalid value: ["10.0.0.8"]: may not change once set'
    assert services.errors({"spec": other}, stored) == [why]
    dual = {"clusterIPs": ["10.0.0.9", "fd00::9"], "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack"}
    upgraded = services.update(stored, {"spec": dual})
    single = {"clusterIPs": ["10.0.0.9"], "ipFamilies": ["IPv4"]}
    assert services.errors({"spec": single}, upgraded) == [
        'spec.ipFamilyPolicy: Invalid value: "PreferDualStack": '
        "must be set to 'SingleStack' when releasing the secondary clusterIP",
        'spec.ipFamilyPolicy: Invalid value: "PreferDualStack": '
        "must be set to 'SingleStack' when releasing the secondary ipFamily",
    ]
    assert services.errors({"spec": {**single, "ipFamilyPolicy": "SingleStack"}}, upgraded) == []
    garbage = {**upgraded, "spec": {**upgraded["spec"], "clusterIPs": ["10.0.0.9", "x"]}}
    assert services.errors({"metadata": {"labels": {"a": "b"}}}, garbage) == [
        "spec.clusterIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: x",
        'spec.clusterIPs: Invalid value: ["10.0.0.9","x"]: may specify no more than one IP for each IP family',
        'spec.clusterIPs[1]: Invalid value: "x": expected an IPv6 value as indicated by `ipFamilies[1]`',
    ]


def test_a_change_of_type_drops_what_it_leaves_without_meaning(kind: Any) -> None:
    services = kind("v1", "services")
    stored = stored_service(kind, type="LoadBalancer", loadBalancerClass="a/b")
    stored["spec"]["ports"][0]["nodePort"] = 30080
    stored["status"] = {"loadBalancer": {"ingress": [{"ip": "203.0.113.1", "ipMode": "VIP"}]}}
    internal = services.update(stored, {"spec": {"type": "ClusterIP"}})
    assert internal["status"] == {"loadBalancer": {}}
    assert "nodePort" not in internal["spec"]["ports"][0]
    gone = ("allocateLoadBalancerNodePorts", "loadBalancerClass", "externalTrafficPolicy")
    assert not any(key in internal["spec"] for key in gone)
    external = services.update(stored, {"spec": {"type": "ExternalName", "externalName": "a.b"}})
    assert "clusterIP" not in external["spec"]
    assert "ipFamilies" not in external["spec"]
    changed = copy.deepcopy(stored["spec"])
    changed["type"], changed["loadBalancerClass"] = "ClusterIP", "c/d"
    drop_unneeded(changed, stored["spec"])
    assert changed["loadBalancerClass"] == "c/d"


@pytest.mark.parametrize(
    ("new", "old", "wanted"),
    [
        ({"clusterIP": "10.0.0.1"}, None, ["10.0.0.1"]),
        ({"clusterIPs": ["10.0.0.1"]}, None, ["10.0.0.1"]),
        ({"clusterIP": "10.0.0.1"}, {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}, ["10.0.0.1"]),
        (
            {"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.1"]},
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]},
            ["10.0.0.2"],
        ),
        ({"clusterIPs": ["10.0.0.1"]}, {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}, None),
        (
            {"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.3"]},
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]},
            ["10.0.0.3"],
        ),
    ],
)
def test_one_address_and_many(new: dict[str, Any], old: dict[str, Any] | None, wanted: list[str] | None) -> None:
    normalize_cluster_ips(new, old)
    assert new.get("clusterIPs") == wanted


def test_allocated_values_are_put_back() -> None:
    old = {
        "type": "NodePort",
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "ports": [{"name": "a", "nodePort": 30001}, {"name": "b", "nodePort": 30002}],
    }
    new: dict[str, Any] = {"type": "NodePort", "ports": [{"name": "a"}, {"name": "b", "nodePort": 30001}]}
    patch_allocated(new, old)
    assert (new["clusterIP"], new["clusterIPs"]) == ("10.0.0.1", ["10.0.0.1"])
    assert new["ports"] == [{"name": "a"}, {"name": "b", "nodePort": 30001}]


@pytest.mark.parametrize(
    ("stored", "families", "policy"),
    [
        ({"clusterIP": "10.0.0.1"}, ["IPv4"], "SingleStack"),
        ({"clusterIP": "None"}, ["IPv4", "IPv6"], "RequireDualStack"),
        ({"clusterIP": "None", "selector": {"a": "b"}}, ["IPv4"], "SingleStack"),
        ({"type": "ExternalName"}, None, None),
    ],
)
def test_old_services_are_completed(stored: dict[str, Any], families: list[str] | None, policy: str | None) -> None:
    default_stored(stored)
    assert (stored.get("ipFamilies"), stored.get("ipFamilyPolicy")) == (families, policy)


def test_status_errors(kind: Any) -> None:
    services = kind("v1", "services")
    entries = [{"ip": "203.0.113.1", "ipMode": "Odd"}, {"hostname": "10.0.0.1"}, {"ipMode": "VIP"}]
    balanced = stored_service(kind, type="LoadBalancer")
    assert services.errors({"status": {"loadBalancer": {"ingress": entries}}}, balanced, "status") == [
        'status.loadBalancer.ingress[0].ipMode: Unsupported value: "Odd": supported values: "Proxy", "VIP"',
        'status.loadBalancer.ingress[1].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address',
        "status.loadBalancer.ingress[2].ipMode: Forbidden: may not be specified when `ip` is not set",
    ]
    plain = stored_service(kind)
    assert services.errors({"status": {"loadBalancer": {"ingress": entries[1:2]}}}, plain, "status") == [
        "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"
    ]


def test_warnings(kind: Any) -> None:
    services = kind("v1", "services")
    services.create(spec(clusterIP="None", clusterIPs=["None"], sessionAffinity="ClientIP", loadBalancerIP="10.0.0.1"))
    assert services.warnings == [
        "spec.loadBalancerIP is ignored for headless services",
        "spec.SessionAffinity is ignored for headless services",
    ]
    services.create(spec(externalIPs=["203.0.113.1"], trafficDistribution="PreferClose", externalName="x"))
    assert services.warnings == [
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        'spec.externalName is ignored when spec.type is not "ExternalName"',
        'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
    ]


def test_rows(kind: Any) -> None:
    services = kind("v1", "services")
    row = services.row(stored_service(kind, type="LoadBalancer", selector={"b": "2", "a": "1"}))
    assert row[1:5] == ["LoadBalancer", "10.0.0.9", "<pending>", "80/TCP"]
    assert row[6] == "a=1,b=2"


def test_endpoints(kind: Any) -> None:
    endpoints = kind("v1", "endpoints")
    subset = {"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}], "ports": [{"port": 80}, {"port": 81}]}
    assert endpoints.errors({"subsets": [subset]}) == [
        "subsets[0].ports[0].name: Required value",
        "subsets[0].ports[1].name: Required value",
    ]
    subset["ports"] = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    made = endpoints.create({"subsets": [subset]})
    assert made["subsets"][0]["ports"][0]["protocol"] == "TCP"
    assert endpoints.row(made)[1] == "192.0.2.1:80,[2001:db8::1]:80,192.0.2.1:81 + 1 more..."
    assert endpoints.row(endpoints.create({}))[1] == "<none>"
    assert endpoints.errors({"subsets": [{"ports": []}]}) == [
        "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"
    ]
    bad = {**made, "subsets": [{"addresses": [{"ip": "x"}]}]}
    assert len(endpoints.errors({"subsets": bad["subsets"]}, made)) == 2
    assert endpoints.errors({"metadata": {"labels": {"a": "b"}}}, bad) == []


@pytest.mark.parametrize(
    ("ip", "what"),
    [
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("::", "may not be unspecified (::)"),
        ("127.1.2.3", "may not be in the loopback range"),
        ("::1", "may not be in the loopback range"),
        ("169.254.1.1", "may not be in the link-local range"),
        ("fe80::1", "may not be in the link-local range"),
        ("224.0.0.1", "may not be in the link-local multicast range"),
        ("ff02::1", "may not be in the link-local multicast range"),
        ("224.0.1.1", ""),
        ("10.0.0.1", ""),
    ],
)
def test_special_addresses(kind: Any, ip: str, what: str) -> None:
    found = kind("v1", "endpoints").errors({"subsets": [{"addresses": [{"ip": ip}]}]})
    assert (what in found[0]) if what else found == []
