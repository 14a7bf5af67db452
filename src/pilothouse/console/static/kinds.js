// The kinds that the server has, by discovery, in an order that people look for them.

import { getJson } from "./api.js";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const SECTIONS = [
  ["Workloads", ["pods", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch",
    "replicasets.apps", "replicationcontrollers", "horizontalpodautoscalers.autoscaling", "poddisruptionbudgets.policy"]],
  ["Configuration", ["configmaps", "secrets", "resourcequotas", "limitranges", "podtemplates"]],
  ["Network", ["services", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io",
    "endpointslices.discovery.k8s.io", "endpoints", "ingressclasses.networking.k8s.io"]],
  ["Storage", ["persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"]],
  ["Cluster", ["namespaces", "nodes", "events", "customresourcedefinitions.apiextensions.k8s.io",
    "apiservices.apiregistration.k8s.io"]],
  ["Access", ["serviceaccounts", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"]],
];

function nameOf(kind) {
  return kind.group ? `${kind.resource}.${kind.group}` : kind.resource;
}

/** All kinds that can be listed: {group, version, resource, kind, namespaced, verbs, shortNames, id}. */
export async function discover() {
  const documents = await Promise.all(["/api", "/apis"].map((path) => getJson(path, { accept: AGGREGATED })));
  const found = new Map();
  for (const document of documents)
    for (const group of document.items || [])
      for (const version of group.versions)
        for (const each of version.resources || []) {
          const kind = {
            group: group.metadata.name || "", version: version.version, resource: each.resource,
            kind: each.responseKind.kind, namespaced: each.scope === "Namespaced", verbs: each.verbs,
            shortNames: each.shortNames || [],
          };
          kind.id = nameOf(kind);
          if (each.verbs.includes("list") && !found.has(kind.id)) found.set(kind.id, kind);
        }
  return [...found.values()];
}

/** Kinds under headings: the well-known ones first, all others by group. */
export function sections(kinds) {
  const left = new Map(kinds.map((kind) => [kind.id, kind]));
  // The events of the newer group are the same objects.
  left.delete("events.events.k8s.io");
  const shown = SECTIONS.map(([title, ids]) => {
    const of = ids.filter((id) => left.has(id)).map((id) => left.get(id));
    ids.forEach((id) => left.delete(id));
    return [title, of];
  });
  const groups = new Map();
  for (const kind of left.values()) groups.set(kind.group, [...(groups.get(kind.group) || []), kind]);
  const isCustom = ([group]) => (/\.k8s\.io$/.test(group) || !group.includes(".") ? 1 : 0);
  const others = [...groups].sort((a, b) => isCustom(a) - isCustom(b) || a[0].localeCompare(b[0]));
  return [...shown, ...others.map(([group, of]) => [group || "core", of])].filter(([, of]) => of.length);
}

/** Where the objects of a kind are, or one of them. */
export function pathOf(kind, namespace = "", name = "") {
  const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
  const inside = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${inside}/${kind.resource}${name ? `/${encodeURIComponent(name)}` : ""}`;
}
