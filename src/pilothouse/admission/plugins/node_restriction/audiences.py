"""Which audiences a node may request tokens for: those its pod's volumes need, and those it was granted."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugins.node_restriction.authorizing import may
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.go_quote import quote

_VERB: Final = "request-serviceaccounts-token-audience"
# Volumes of old kinds are the business of these drivers by now.
_MIGRATED: Final = {
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "cinder": "cinder.csi.openstack.org",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
    "portworxVolume": "pxd.portworx.com",
}


class AudienceCheck:
    """Looks from a pod through its claims and volumes to the drivers that use tokens."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._claims = environment.late_objects("", "v1", "persistentvolumeclaims")
        self._volumes = environment.late_objects("", "v1", "persistentvolumes")
        self._drivers = environment.late_objects("storage.k8s.io", "v1", "csidrivers")

    async def check(self, attributes: Attributes, audiences: list[str], pod: dict[str, Any]) -> None:
        """Refuse other audiences."""
        if len(audiences) > 1:
            raise forbidden(attributes, "node may only request 0 or 1 audiences")
        audience = audiences[0] if audiences else ""
        for objects in (self._claims, self._volumes, self._drivers):
            await objects.ready()
        errs: list[str] = []
        volumes = (pod.get("spec") or {}).get("volumes") or ()
        if any(self._uses(volume, pod, audience, errs) for volume in volumes):
            return
        if errs:
            raise forbidden(attributes, f"error validating audience {quote(audience)}: {aggregate(errs)}")
        failure = await may(self._environment, attributes, _VERB, audience, attributes.name)
        if failure is None:
            return
        user = attributes.user.name
        if failure:
            why = f"error authorizing {user} to request tokens for audience {quote(audience)}: {failure}"
            raise forbidden(attributes, why)
        raise forbidden(attributes, f"{user} is not authorized to request tokens for audience {quote(audience)}")

    def _uses(self, volume: dict[str, Any], pod: dict[str, Any], audience: str, errs: list[str]) -> bool:
        for source in (volume.get("projected") or {}).get("sources") or ():
            token = source.get("serviceAccountToken")
            if token is not None and token.get("audience", "") == audience:
                return True
        try:
            name = self._driver(volume, pod)
            if not name:
                return False
            driver = _find(self._drivers, "", name, "csidriver.storage.k8s.io")
        except _Missing as missing:
            errs.append(str(missing))
            return False
        requests = (driver.get("spec") or {}).get("tokenRequests") or ()
        return any(each.get("audience", "") == audience for each in requests)

    def _driver(self, volume: dict[str, Any], pod: dict[str, Any]) -> str:
        if (volume.get("ephemeral") or {}).get("volumeClaimTemplate") is not None:
            claim = f"{pod['metadata']['name']}-{volume.get('name', '')}"
        elif volume.get("persistentVolumeClaim") is not None:
            claim = volume["persistentVolumeClaim"].get("claimName", "")
        else:
            return _driver_of(volume)
        found = _find(self._claims, pod["metadata"].get("namespace", ""), claim, "persistentvolumeclaim")
        name = (found.get("spec") or {}).get("volumeName", "")
        bound = _find(self._volumes, "", name, "persistentvolume")
        return _driver_of(bound.get("spec") or {})


def _driver_of(source: dict[str, Any]) -> str:
    """The driver behind a volume, its own or that of an old kind."""
    if source.get("csi") is not None:
        return str(source["csi"].get("driver", ""))
    return next((driver for kind, driver in _MIGRATED.items() if source.get(kind) is not None), "")


class _Missing(Exception):
    """Something on the way from a volume to its driver does not exist."""


def _find(objects: Objects, namespace: str, name: str, kind: str) -> dict[str, Any]:
    found = objects.get(namespace, name)
    if found is None:
        raise _Missing(f"{kind} {quote(name)} not found")
    return found
