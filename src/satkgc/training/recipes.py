"""From a recipe's files to the settings of a run: what they say, over it what they say for the graph, over it what the
user overrides; and in a fused recipe the same for each expert."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.models import MODELS, EncoderModelConfig
from satkgc.processes import find_device
from satkgc.sampling import SamplingConfig
from satkgc.settings import Tree, build, flatten, merge, parse
from satkgc.training.config import ALIASES, Config
from satkgc.training.recipe_files import (
    BACKBONE,
    HANDED_ON,
    SHARED,
    RecipeFile,
    left_out,
    read_chain,
    refuse_settings_of_experts,
)

SMALL = 20_000  # training triples; fewer are a small graph
LEAST_STEPS = 150  # that it takes to train one, however small
QUICK, FULL = "quick", "satkgc-adjusted"  # the default recipes: without a GPU, and with one


def default_recipe(device: str = "auto", custom: bool = False) -> str:
    """What is trained on a device if no recipe is named; a sampler or a loss of one's own is for the full one."""
    return FULL if custom or find_device(device).type != "cpu" else QUICK


def make_config(
    recipe: str | os.PathLike[str] = "satkgc",
    *,
    benchmark: str | None = None,
    triples: int | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """A recipe, by name or TOML file; over it its settings for the benchmark, if any; over both what files of the
    user's say, if the recipe is one, and over that what the same files say for the benchmark; over all `overrides`.

    `overrides` go by dotted name, `{"model.loss.margin": 0.05}`; text is read by the type of its setting. In each layer
    `training.epochs` stands before the `training.steps` of those below. `benchmark` is `kg.benchmark`; without one, and
    with `triples`, the size of the training graph, a small graph gets the recipe's settings for small graphs.

    A fused recipe names the recipes of its experts, `[experts.text] recipe = "neighbours"`; what else stands there, and
    overrides such as `experts.text.training.epochs`, is laid over that recipe.
    """
    recipe, overrides = os.fspath(recipe), dict(overrides or {})
    chain = _hand_on(read_chain(recipe), [name.split(".")[1] for name in overrides if _is_expert_recipe(name)])
    trees: list[Tree] = [part.tree for part in reversed(chain)]
    tree = merge(reduce(_over, trees), {"recipe": recipe})
    applied, laid = _graph_settings(chain, tree, benchmark, triples, overrides)
    if applied is not None:
        own = _user_tree(chain, applied.lower(), _kind(chain, overrides))
        tree = merge(_over(_over(tree, laid), own), {"applied": applied})
    if "experts" in tree:
        tree, overrides = _with_experts(tree, overrides, benchmark, triples)
    return build(Config, _over(tree, parse(Config, overrides, ALIASES, tree)), aliases=ALIASES)


def share_with_experts(overrides: Mapping[str, Any], experts: Mapping[str, str]) -> dict[str, Any]:
    """Overrides of a fused run: what is said of the whole holds for each expert, unless more is said of that one.

    The experts are given with their kinds of model: a backbone is for all that read texts.
    """
    shared = {name: value for name, value in overrides.items() if name in SHARED | HANDED_ON}
    refuse_settings_of_experts(overrides, experts)
    handed = {
        f"experts.{expert}.{name}": value
        for expert, kind in experts.items()
        for name, value in shared.items()
        if name != BACKBONE or issubclass(MODELS[kind].Config, EncoderModelConfig)
    }
    return {**handed, **{name: value for name, value in overrides.items() if name not in HANDED_ON}}


def user_settings(recipe: str) -> Tree:
    """What the files of a recipe say that do not come with the package."""
    return _user_tree(_hand_on(read_chain(recipe)))


def _with_experts(
    tree: Tree, overrides: Mapping[str, Any], benchmark: str | None, triples: int | None
) -> tuple[Tree, dict[str, Any]]:
    """The tree with all settings of each expert, and the overrides that are left."""
    entries = {name: dict(entry) for name, entry in tree["experts"].items()}
    for name, value in overrides.items():
        if _is_expert_recipe(name):
            entries.setdefault(name.split(".")[1], {})["recipe"] = value
    entries = {name: entry for name, entry in entries.items() if not left_out(entry)}
    kinds = {name: read_chain(entry["recipe"])[0].kind for name, entry in entries.items()}
    overrides, experts = share_with_experts(overrides, kinds), dict[str, Tree]()
    for name, entry in entries.items():
        start = f"experts.{name}."
        own = {n.removeprefix(start): value for n, value in overrides.items() if n.startswith(start)}
        own = {n: value for n, value in {**flatten(entry), **own}.items() if n not in ("recipe", "model.kind")}
        config = make_config(entry["recipe"], benchmark=benchmark, triples=triples, overrides=own)
        experts[name] = config.model_dump()
    unknown = [n for n in overrides if n.startswith("experts.") and n.split(".")[1] not in tree["experts"] | entries]
    if unknown:
        remedy = f"there are {', '.join(entries)}; experts.NAME.recipe=RECIPE adds one"
        raise SatkgcError(f"unknown setting {unknown[0]}: there is no such expert", remedy=remedy)
    evaluation: Tree = next((expert["evaluation"] for expert in experts.values()), {})
    tree = {**merge({"evaluation": evaluation}, tree), "experts": experts}
    return tree, {name: value for name, value in overrides.items() if not name.startswith("experts.")}


def _is_expert_recipe(name: str) -> bool:
    """Whether a setting names the recipe of an expert."""
    return name.startswith("experts.") and name.endswith(".recipe") and name.count(".") == 2


def _user_tree(chain: list[RecipeFile], graph: str | None = None, kind: str | None = None) -> Tree:
    """What files of the user's say; not what they, or nearer ones, say otherwise for a graph and a kind of model."""
    own = Tree()
    for part in reversed(chain):
        if not part.packaged:
            said = flatten(part.graphs.get(graph, {})) if graph is not None and part.kind == kind else {}
            own = _without(_over(own, part.tree), said)
    return own


def _without(tree: Mapping[str, Any], names: Collection[str], prefix: str = "") -> Tree:
    """A tree without these settings; of the length of a run, steps and epochs are one."""
    length = ("training.steps", "training.epochs")
    names = {*names, *(length if any(name in names for name in length) else ())}
    kept = {name: value for name, value in tree.items() if f"{prefix}{name}" not in names}
    return {
        name: _without(value, names, f"{prefix}{name}.") if isinstance(value, Mapping) else value
        for name, value in kept.items()
    }


def _kind(chain: list[RecipeFile], overrides: Mapping[str, Any]) -> str:
    """Which kind of model a recipe is for."""
    return str(overrides.get("model.kind", chain[0].kind))


def _graph_settings(
    chain: list[RecipeFile], plain: Tree, benchmark: str | None, triples: int | None, overrides: Mapping[str, Any]
) -> tuple[str | None, Tree]:
    """The settings of the whole chain for one graph, the nearest recipe's over those that it extends.

    Those of a recipe for another kind of model are left out: its batches and rates are not this one's.
    """
    chain = [part for part in chain if part.kind == _kind(chain, overrides)]
    if benchmark is not None:
        layers = [part.graphs[benchmark.lower()] for part in reversed(chain) if benchmark.lower() in part.graphs]
        return (benchmark, reduce(_over, layers)) if layers else (None, {})
    if triples is None or not 0 < triples < SMALL:
        return None, {}
    small: list[Tree] = [part.graphs["small"] for part in reversed(chain) if "small" in part.graphs]
    tree = reduce(_over, small, Tree())
    if not tree:
        return None, {}
    sampling, training = dict(tree.get("sampling", {})), dict(tree.get("training", {}))
    backbones = [overrides.get("model.encoder.backbone")]
    backbones += [part.tree.get("model", {}).get("encoder", {}).get("backbone") for part in chain]
    if next(filter(None, backbones), "minilm") != "minilm":
        training.pop("learning_rate", None)  # it is MiniLM's: a larger backbone wants a lower one
    size = merge(plain.get("sampling", {}), sampling).get("batch_size", SamplingConfig().batch_size)
    sampling["batch_size"] = min(size, 2 * triples)  # what the graph can fill
    if "epochs" in training:
        epochs = math.ceil(LEAST_STEPS / max(1, triples // sampling["batch_size"]))
        training["epochs"] = max(training["epochs"], float(epochs))
    return "small", {**tree, "sampling": sampling, "training": training}


def _hand_on(chain: list[RecipeFile], added: Iterable[str] = ()) -> list[RecipeFile]:
    """A fused recipe's files, with what they say of the whole said of each expert; `added` are those of overrides."""
    names = dict.fromkeys([*(name for part in chain for name in part.tree.get("experts", {})), *added])

    def handed_on(tree: Tree) -> Tree:
        training = tree.get("training", {})
        shared = {name: value for name, value in training.items() if f"training.{name}" in SHARED | HANDED_ON}
        if not shared:
            return tree
        whole = {name: value for name, value in training.items() if f"training.{name}" not in HANDED_ON}
        experts = {name: _over({"training": shared}, tree.get("experts", {}).get(name, {})) for name in names}
        return {**tree, "training": whole, "experts": experts}

    return [
        replace(part, tree=handed_on(part.tree), graphs={name: handed_on(tree) for name, tree in part.graphs.items()})
        if part.kind == "fused"
        else part
        for part in chain
    ]


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Both as one, as `merge` does it; epochs above take the place of steps below, an expert's too."""
    return merge(merge(below, _no_steps(above)), above)


def _no_steps(above: Mapping[str, Any]) -> Tree:
    """What goes between two trees, so that epochs above stand before steps below."""
    tree: Tree = {"training": {"steps": None}} if "epochs" in above.get("training", {}) else {}
    experts = {name: part for name, entry in above.get("experts", {}).items() if (part := _no_steps(entry))}
    return {**tree, "experts": experts} if experts else tree
