"""Examples in the OpenAPI description, one for each way to ask."""

from __future__ import annotations

from fastapi.openapi.models import Example

COMPLETE: dict[str, Example] = {
    "tail": {"summary": "(dog, hypernym, ?)", "value": {"head": "dog", "relation": "hypernym", "k": 5}},
    "head": {
        "summary": "(?, hypernym, dog), without what the graph has",
        "value": {"relation": "hypernym", "tail": "dog", "drop_known": True},
    },
    "relation": {"summary": "(dog, ?, canine)", "value": {"head": "dog", "tail": "canine"}},
    "new": {
        "summary": "an entity that the graph never had",
        "value": {
            "head": {"name": "labradoodle", "description": "a dog bred from a labrador and a poodle"},
            "relation": "hypernym",
        },
    },
}
BATCH: dict[str, Example] = {
    "two": {
        "summary": "two questions",
        "value": {"questions": [{"head": "dog", "relation": "hypernym"}, {"relation": "hypernym", "tail": "dog"}]},
    }
}
EVIDENCE: dict[str, Example] = {
    "known": {"summary": "why a dog is a canine", "value": {"head": "dog", "relation": "hypernym", "tail": "canine"}},
    "new": {
        "summary": "for a new entity",
        "value": {
            "head": {"name": "labradoodle", "description": "a dog bred from a labrador and a poodle"},
            "relation": "hypernym",
            "tail": "dog",
        },
    },
}
FITTING: dict[str, Example] = {
    "tail": {"summary": "what can be said of a dog", "value": {"entity": "dog"}},
    "head": {"summary": "which relations lead to it", "value": {"entity": "dog", "asked": "head"}},
}
