"""Run folders of format 1, as version 0.1 wrote them: their settings by the names that they have now."""

from __future__ import annotations

from typing import Any

from satkgc.settings import Tree

# What these recipes were is called so now; "satkgc" and "simkgc" are the papers' own.
_RECIPES = {"satkgc": "satkgc-adjusted", "simkgc": "simkgc-adjusted"}
_PROXIMITY = {"off": "off", "all": "paper", "negatives": "authors"}


def config_of_format_1(old: Tree) -> Tree:
    """The settings of an old config.json. What has no meaning for a finished model any more is left out."""
    text, encoder, objective = (dict(old.get(part, {})) for part in ("text", "encoder", "objective"))
    sampling, training = dict(old.get("sampling", {})), dict(old.get("training", {}))
    by_relation = text.pop("neighbour_relations", False)
    neighbours = text.pop("neighbours", 10)
    tracker = training.get("tracker")
    return {
        "recipe": _RECIPES.get(recipe := old.get("recipe", "satkgc"), recipe),
        "applied": None if old.get("applied") == "none" else old.get("applied"),
        "model": {
            "kind": "text",
            "text": {
                **_kept(text, "max_tokens", "description_words", "short_words", "relation_order"),
                "neighbours": 0 if by_relation else neighbours,
                "neighbours_per_relation": neighbours if by_relation else 0,
                **_renamed(text, bare_share="neighbour_dropout", hide="exclude"),
            },
            "encoder": {
                **_kept(encoder, "backbone", "revision", "tied", "pooling", "dropout", "forward", "attention"),
                **_kept(encoder, "compile"),
                **_kept(training, "chunk_tokens"),
            },
            "loss": {
                **_kept(objective, "temperature", "margin", "two_sided", "self_negatives", "beta", "frequency"),
                "proximity": _PROXIMITY[objective.get("proximity", "off")],
                **_renamed(objective, popularity="logit_adjustment"),
            },
        },
        "sampling": {name: value for name, value in sampling.items() if name != "distances"},
        "training": {
            **{n: v for n, v in training.items() if n not in ("chunk_tokens", "average", "objective_learning_rate")},
            "tracker": None if tracker == "none" else tracker,
        },
        "evaluation": dict(old.get("evaluation", {})),
    }


def _kept(values: Tree, *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _renamed(values: Tree, **names: str) -> dict[str, Any]:
    return {new: values[old] for old, new in names.items() if old in values}
