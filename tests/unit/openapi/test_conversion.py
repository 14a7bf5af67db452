"""Version 2 becomes version 3 as far as explaining and validating need it."""

from __future__ import annotations

from pilothouse.openapi.conversion import convert


def test_a_whole_document() -> None:
    swagger = {
        "swagger": "2.0",
        "info": {"title": "toys", "version": "1"},
        "paths": {
            "/kites": {
                "parameters": [{"name": "pretty", "in": "query", "type": "string", "uniqueItems": True}],
                "post": {
                    "operationId": "createKite",
                    "consumes": ["application/json"],
                    "produces": ["application/json"],
                    "parameters": [
                        {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/Kite"}},
                        {"$ref": "#/parameters/dryRun-1"},
                    ],
                    "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Kite"}}},
                    "x-kubernetes-action": "post",
                },
            }
        },
        "definitions": {
            "Kite": {
                "properties": {
                    "tail": {"description": "its tail", "$ref": "#/definitions/Tail"},
                    "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
                }
            }
        },
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Kite"}}}
    assert convert(swagger) == {
        "openapi": "3.0.0",
        "info": {"title": "toys", "version": "1"},
        "paths": {
            "/kites": {
                "parameters": [{"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": True}}],
                "post": {
                    "operationId": "createKite",
                    "requestBody": {"content": content},
                    "parameters": [{"$ref": "#/components/parameters/dryRun-1"}],
                    "responses": {"200": {"description": "OK", "content": content}},
                    "x-kubernetes-action": "post",
                },
            }
        },
        "components": {
            "schemas": {
                "Kite": {
                    "properties": {
                        "tail": {"description": "its tail", "allOf": [{"$ref": "#/components/schemas/Tail"}]},
                        "lines": {"type": "array", "items": {"$ref": "#/components/schemas/Line"}},
                    }
                }
            },
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
    }
