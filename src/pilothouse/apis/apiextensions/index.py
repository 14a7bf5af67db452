"""The strategies of custom resource definitions, by resource."""

from __future__ import annotations

from pilothouse.apis.apiextensions.custom_resource_definition.strategy import DefinitionStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"customresourcedefinitions": DefinitionStrategy}
