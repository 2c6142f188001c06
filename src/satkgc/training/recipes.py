"""Recipes: TOML files that extend one another, each with settings for well-known graphs.

A recipe file has the tables of `Config` and, under `[graph.NAME]`, tables that are laid over them where the graph is
that benchmark: `[graph."WN18RR".training]`. `[graph.small]` is for small graphs that have no settings of their own.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.models import MODELS, EncoderModelConfig
from satkgc.processes import find_device
from satkgc.sampling import SamplingConfig
from satkgc.settings import Tree, build, flatten, merge, parse
from satkgc.training.config import ALIASES, Config

FOLDER = Path(__file__).parent / "recipes"
SMALL = 20_000  # training triples; fewer are a small graph
LEAST_STEPS = 150  # that it takes to train one, however small
# Settings of a fused run: those that each of its experts gets, and those of its own.
SHARED = frozenset(
    f"training.{name}" for name in ("seed", "device", "workers", "checkpoint_minutes", "keep_checkpoints", "precision")
)
QUICK, FULL = "quick", "satkgc-adjusted"  # the default recipes: without a GPU, and with one
BACKBONE = "model.encoder.backbone"
HANDED_ON = frozenset(["training.steps", "training.epochs", BACKBONE])  # to the experts, and not kept by the whole
OF_FUSED = SHARED | {"training.max_minutes"}


@dataclass(frozen=True)
class _Recipe:
    """One file: what it says, and what it says for some graphs."""

    path: Path
    tree: Tree
    graphs: dict[str, Tree]  # by lower-case name
    kind: str  # of model: its own, or that of the recipe it extends

    @property
    def packaged(self) -> bool:
        return self.path.is_relative_to(FOLDER.resolve())


def default_recipe(device: str = "auto", custom: bool = False) -> str:
    """What is trained on a device if no recipe is named; a sampler or a loss of one's own is for the full one."""
    return FULL if custom or find_device(device).type != "cpu" else QUICK


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


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
    chain = _hand_on(_chain(recipe), [name.split(".")[1] for name in overrides if _is_expert_recipe(name)])
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
    _refuse_settings_of_experts(overrides, experts)
    handed = {
        f"experts.{expert}.{name}": value
        for expert, kind in experts.items()
        for name, value in shared.items()
        if name != BACKBONE or issubclass(MODELS[kind].Config, EncoderModelConfig)
    }
    return {**handed, **{name: value for name, value in overrides.items() if name not in HANDED_ON}}


def _refuse_settings_of_experts(names: Iterable[str], experts: Iterable[str], where: Path | None = None) -> None:
    for name in names:
        if name.startswith(("training.", "sampling.")) and name not in OF_FUSED | HANDED_ON:
            remedy = f"say of which: experts.{next(iter(experts), 'NAME')}.{name}"
            raise SatkgcError(f"{name} is a setting of the experts of a fused run", where=where, remedy=remedy)


def user_settings(recipe: str) -> Tree:
    """What the files of a recipe say that do not come with the package."""
    return _user_tree(_hand_on(_chain(recipe)))


def _with_experts(
    tree: Tree, overrides: Mapping[str, Any], benchmark: str | None, triples: int | None
) -> tuple[Tree, dict[str, Any]]:
    """The tree with all settings of each expert, and the overrides that are left."""
    entries = {name: dict(entry) for name, entry in tree["experts"].items()}
    for name, value in overrides.items():
        if _is_expert_recipe(name):
            entries.setdefault(name.split(".")[1], {})["recipe"] = value
    entries = {name: entry for name, entry in entries.items() if not _left_out(entry)}
    kinds = {name: _chain(entry["recipe"])[0].kind for name, entry in entries.items()}
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


def _user_tree(chain: list[_Recipe], graph: str | None = None, kind: str | None = None) -> Tree:
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


def _kind(chain: list[_Recipe], overrides: Mapping[str, Any]) -> str:
    """Which kind of model a recipe is for."""
    return str(overrides.get("model.kind", chain[0].kind))


def _graph_settings(
    chain: list[_Recipe], plain: Tree, benchmark: str | None, triples: int | None, overrides: Mapping[str, Any]
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


def _chain(name: str) -> list[_Recipe]:
    """A recipe and those it extends, nearest first."""
    files: list[tuple[Path, Tree]] = []
    base: str | None = name
    near = Path()
    while base is not None:
        path = _find(base, near)
        if path in (other for other, _ in files):
            raise SatkgcError("a recipe extends itself", where=path, remedy="break the circle")
        try:
            tree = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SatkgcError(f"not a TOML file: {error}", where=path) from error
        _check_shape(tree, path)
        base, near = tree.pop("extends", None), path.parent
        files.append((path, tree))
    chain: list[_Recipe] = []
    kind: Tree = {}  # of model, as the recipes below have it
    for path, tree in reversed(files):
        graphs = tree.pop("graph", {})
        kind = merge(kind, _expert_kinds(tree))
        # Each is built alone, so that a mistake is told with the file that has it.
        config = _build_alone(tree, kind, path)
        kind = _without_left_out({**kind, "model": {"kind": config.model.kind}}, tree)
        for part in graphs.values():
            _build_alone(part, merge(kind, _expert_kinds(part)), path)
        graphs = {graph.lower(): part for graph, part in graphs.items()}
        chain.insert(0, _Recipe(path, merge(kind, tree), graphs, config.model.kind))
    return chain


def _check_shape(tree: Tree, path: Path) -> None:
    """Refuse what is no table and no text where one must be; of all else the settings are checked."""
    for name in ("graph", "experts"):
        table = tree.get(name, {})
        for value in table.values() if isinstance(table, Mapping) else [table]:
            if not isinstance(value, Mapping):
                raise SatkgcError(f"{name} has {value!r}", where=path, remedy=f"it takes tables, [{name}.NAME]")
    for part in tree.get("graph", {}).values():
        _check_shape(part, path)
    for recipe in (tree.get("extends", ""), *(entry.get("recipe", "") for entry in tree.get("experts", {}).values())):
        if not isinstance(recipe, str):
            raise SatkgcError(f"{recipe!r} is no recipe", where=path, remedy="give its name, or that of a TOML file")


def _build_alone(tree: Tree, kind: Tree, path: Path) -> Config:
    """The settings of one file, or of what it has for a graph, over the kinds of models that it is about."""
    experts = kind.get("experts", {})
    for name in tree.get("experts", {}):
        if name not in experts and not _left_out(tree["experts"][name]):
            remedy = f"there are {', '.join(experts) or 'none'}; recipe = RECIPE under [experts.{name}] adds it"
            raise SatkgcError(f"there is no expert {name}", where=path, remedy=remedy)
    config = build(Config, _without_left_out(merge(kind, tree), tree), where=path, aliases=ALIASES)
    if config.experts:
        _refuse_settings_of_experts(flatten(tree), config.experts, path)
    return config


def _left_out(entry: Mapping[str, Any]) -> bool:
    """Whether an expert is there to be left out: its recipe is none."""
    return str(entry.get("recipe", "")).lower() == "none"


def _without_left_out(tree: Tree, above: Tree) -> Tree:
    """A tree without the experts that the one above leaves out."""
    experts = tree.get("experts", {})
    kept = {name: entry for name, entry in experts.items() if not _left_out(above.get("experts", {}).get(name, {}))}
    return {**tree, "experts": kept} if experts else tree


def _expert_kinds(tree: Tree) -> Tree:
    """Which kind of model each expert of a fused recipe is: by the recipe that it names."""
    entries = tree.get("experts", {}).items()
    named = {name: entry["recipe"] for name, entry in entries if "recipe" in entry and not _left_out(entry)}
    experts = {name: {"model": {"kind": _chain(recipe)[0].kind}} for name, recipe in named.items()}
    return {"experts": experts} if experts else {}


def _hand_on(chain: list[_Recipe], added: Iterable[str] = ()) -> list[_Recipe]:
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


def _find(name: str, near: Path) -> Path:
    """A file where it is named as one, of the folder it is named in; else a recipe of the package, or one near by."""
    places = [near / name] if name.endswith(".toml") else [FOLDER / f"{name}.toml", near / f"{name}.toml"]
    for path in places:
        if path.is_file():
            return path.resolve()
    close = difflib.get_close_matches(name, recipe_names(), n=1)
    remedy = f"did you mean {close[0]}?" if close else f"there are {', '.join(recipe_names())}; or give a TOML file"
    raise SatkgcError(f"unknown recipe {name!r}", remedy=remedy)
