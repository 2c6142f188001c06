"""The files of recipes: found, read with those that they extend, and checked one by one.

A recipe file has the tables of `Config` and, under `[graph.NAME]`, tables that are laid over them where the graph is
that benchmark: `[graph."WN18RR".training]`. `[graph.small]` is for small graphs that have no settings of their own.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.settings import Tree, build, flatten, merge
from satkgc.training.config import ALIASES, Config

FOLDER = Path(__file__).parent / "recipes"
# Settings of a fused run: those that each of its experts gets, and those of its own.
SHARED = frozenset(
    f"training.{name}" for name in ("seed", "device", "workers", "checkpoint_minutes", "keep_checkpoints", "precision")
)
BACKBONE = "model.encoder.backbone"
HANDED_ON = frozenset(["training.steps", "training.epochs", BACKBONE])  # to the experts, and not kept by the whole
OF_FUSED = SHARED | {"training.max_minutes"}


@dataclass(frozen=True)
class RecipeFile:
    """One file: what it says, and what it says for some graphs."""

    path: Path
    tree: Tree
    graphs: dict[str, Tree]  # by lower-case name
    kind: str  # of model: its own, or that of the recipe it extends

    @property
    def packaged(self) -> bool:
        return self.path.is_relative_to(FOLDER.resolve())


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def read_chain(name: str) -> list[RecipeFile]:
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
    chain: list[RecipeFile] = []
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
        chain.insert(0, RecipeFile(path, merge(kind, tree), graphs, config.model.kind))
    return chain


def _find(name: str, near: Path) -> Path:
    """A file where it is named as one, of the folder it is named in; else a recipe of the package, or one near by."""
    places = [near / name] if name.endswith(".toml") else [FOLDER / f"{name}.toml", near / f"{name}.toml"]
    for path in places:
        if path.is_file():
            return path.resolve()
    close = difflib.get_close_matches(name, recipe_names(), n=1)
    remedy = f"did you mean {close[0]}?" if close else f"there are {', '.join(recipe_names())}; or give a TOML file"
    raise SatkgcError(f"unknown recipe {name!r}", remedy=remedy)


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
        if name not in experts and not left_out(tree["experts"][name]):
            remedy = f"there are {', '.join(experts) or 'none'}; recipe = RECIPE under [experts.{name}] adds it"
            raise SatkgcError(f"there is no expert {name}", where=path, remedy=remedy)
    config = build(Config, _without_left_out(merge(kind, tree), tree), where=path, aliases=ALIASES)
    if config.experts:
        refuse_settings_of_experts(flatten(tree), config.experts, path)
    return config


def _expert_kinds(tree: Tree) -> Tree:
    """Which kind of model each expert of a fused recipe is: by the recipe that it names."""
    entries = tree.get("experts", {}).items()
    named = {name: entry["recipe"] for name, entry in entries if "recipe" in entry and not left_out(entry)}
    experts = {name: {"model": {"kind": read_chain(recipe)[0].kind}} for name, recipe in named.items()}
    return {"experts": experts} if experts else {}


def left_out(entry: Mapping[str, Any]) -> bool:
    """Whether an expert is there to be left out: its recipe is none."""
    return str(entry.get("recipe", "")).lower() == "none"


def _without_left_out(tree: Tree, above: Tree) -> Tree:
    """A tree without the experts that the one above leaves out."""
    experts = tree.get("experts", {})
    kept = {name: entry for name, entry in experts.items() if not left_out(above.get("experts", {}).get(name, {}))}
    return {**tree, "experts": kept} if experts else tree


def refuse_settings_of_experts(names: Iterable[str], experts: Iterable[str], where: Path | None = None) -> None:
    for name in names:
        if name.startswith(("training.", "sampling.")) and name not in OF_FUSED | HANDED_ON:
            remedy = f"say of which: experts.{next(iter(experts), 'NAME')}.{name}"
            raise SatkgcError(f"{name} is a setting of the experts of a fused run", where=where, remedy=remedy)
