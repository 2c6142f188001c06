"""Recipes: TOML files that extend one another, with settings for well-known graphs laid over them."""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.training.config import Config
from satkgc.training.settings import Tree, build, check, merge, parse

FOLDER = Path(__file__).parent / "recipes"
SMALL = 20_000  # training triples; fewer are a small graph
LEAST_STEPS = 150  # that it takes to train one, however small


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def make_config(
    recipe: str | os.PathLike[str] = "satkgc",
    *,
    graph: str | None = None,
    triples: int | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """A recipe, by name or TOML file; over it the settings for the graph of this name, if any; over both what files of
    the user's say, if the recipe is one; over all `overrides`.

    `overrides` go by dotted name, `{"objective.margin": 0.05}`; text is read by the type of its setting. In each layer
    `training.epochs` stands before the `training.steps` of those below. Pass no `graph` to leave the settings for it
    out. With `triples`, the size of the training graph, one that has no settings of its own and is small gets those for
    small graphs.
    """
    recipe, overrides = os.fspath(recipe), dict(overrides or {})
    line = _line(recipe)
    tree = merge(_whole(line), {"recipe": recipe})
    known = (graph or "").lower()
    # A recipe's own settings for the graph come first, or those of the next one that it extends and that has some.
    own = (f"graphs/{path.stem}/{known}" for path, _ in line if path.parent == FOLDER.resolve())
    for name in (*own, f"graphs/{known}"):
        if (FOLDER / f"{name}.toml").is_file():
            tree = _over(_over(tree, _whole(_line(name))), {**own_settings(recipe), "applied": graph})
            break
    else:
        if graph is not None and triples is not None and 0 < triples < SMALL:
            small = _small(triples)
            if overrides.get("encoder.backbone", tree.get("encoder", {}).get("backbone", "minilm")) != "minilm":
                del small["training"]["learning_rate"]
            tree = _over(_over(tree, small), {**own_settings(recipe), "applied": "small"})
    return build(Config, _over(tree, parse(Config, overrides)))


def _small(triples: int) -> Tree:
    """The settings for a small graph: sizes/small.toml, a batch that it can fill, and no fewer steps than it takes."""
    tree = _whole(_line("graphs/sizes/small"))
    sampling, training = tree["sampling"], tree["training"]
    sampling["batch_size"] = min(sampling["batch_size"], 2 * triples)
    epochs = math.ceil(LEAST_STEPS / max(1, triples // sampling["batch_size"]))
    training["epochs"] = max(training["epochs"], float(epochs))
    return tree


def own_settings(recipe: str) -> Tree:
    """What the files of a recipe say that do not come with the package."""
    trees = [tree for path, tree in reversed(_line(recipe)) if not path.is_relative_to(FOLDER.resolve())]
    return reduce(_over, trees, {})


def _line(name: str) -> list[tuple[Path, Tree]]:
    """A recipe and those it extends, each with what it says itself."""
    line: list[tuple[Path, Tree]] = []
    base: str | None = name
    near = Path()
    while base is not None:
        path = _find(base, near)
        if path in (seen for seen, _ in line):
            raise SatkgcError("a recipe extends itself", where=path, remedy="break the circle")
        try:
            tree = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SatkgcError(f"not a TOML file: {error}", where=path) from error
        base, near = tree.pop("extends", None), path.parent
        check(Config, tree, where=path)  # so that a mistake is told with the file that has it
        line.append((path, tree))
    return line


def _whole(line: list[tuple[Path, Tree]]) -> Tree:
    """The settings of a line of recipes, the first over the next."""
    return reduce(_over, (tree for _, tree in reversed(line)))


def _over(below: Tree, above: Tree) -> Tree:
    """Both as one, as `merge` does it; epochs above take the place of steps below."""
    length: Tree = {"training": {"steps": None}} if "epochs" in above.get("training", {}) else {}
    return merge(merge(below, length), above)


def _find(name: str, near: Path) -> Path:
    """A file where it is named as one, of the folder it is named in; else a recipe of the package, or one near by."""
    places = [near / name] if name.endswith(".toml") else [FOLDER / f"{name}.toml", near / f"{name}.toml"]
    for path in places:
        if path.is_file():
            return path.resolve()
    close = difflib.get_close_matches(name, recipe_names(), n=1)
    remedy = f"did you mean {close[0]}?" if close else f"there are {', '.join(recipe_names())}; or give a TOML file"
    raise SatkgcError(f"unknown recipe {name!r}", remedy=remedy)
