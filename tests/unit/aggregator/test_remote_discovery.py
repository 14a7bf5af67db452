"""Lists of group versions, as aggregated discovery tells them."""

from pilothouse.aggregator.remote_discovery import listed_resources


def test_subresources_go_below_their_resource() -> None:
    things = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get"]}
    scale = {"name": "things/scale", "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["update"]}
    assert listed_resources({"resources": [scale, {**things, "shortNames": ["th"]}]}) == {
        "resources": [
            {
                "resource": "things",
                "responseKind": {"group": "", "version": "", "kind": "Thing"},
                "scope": "Namespaced",
                "singularResource": "thing",
                "verbs": ["get"],
                "shortNames": ["th"],
                "subresources": [
                    {
                        "subresource": "scale",
                        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                        "verbs": ["update"],
                    }
                ],
            }
        ]
    }
