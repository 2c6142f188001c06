"""From files and command lines to typed settings: frozen dataclasses, checked by their annotations."""

from __future__ import annotations

import difflib
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from satkgc.errors import SatkgcError

Settings = TypeVar("Settings")
Tree = dict[str, Any]

ALIKE = 0.75  # how much a name must look like a setting to be taken for it
_OTHERS = {
    "training.learning_rate": "lr peak_lr",
    "sampling.batch_size": "bs batch per_device_train_batch_size",
    "training.epochs": "num_epochs num_train_epochs max_epochs",
    "training.steps": "num_steps max_steps",
    "training.seed": "random_seed random_state",
    "training.device": "gpu cuda",
    "training.warmup_steps": "warmup num_warmup_steps",
    "training.clip": "grad_clip max_grad_norm",
    "training.precision": "fp16 bf16 amp dtype",
    "encoder.backbone": "model model_name",
    "text.max_tokens": "max_length max_len max_seq_length",
    "objective.temperature": "tau temp",
    "objective.margin": "gamma",
}
USUAL = {other: name for name, others in _OTHERS.items() for other in others.split()}  # what others call them


def build(
    kind: type[Settings],
    values: Mapping[str, Any],
    *,
    where: object = None,
    prefix: str = "",
    whole: type[Any] | None = None,
) -> Settings:
    """Make a (nested) settings dataclass of plain values; an unknown name or a wrong type is named in the refusal."""
    return kind(**check(kind, values, where=where, prefix=prefix, whole=whole))


def check(
    kind: type[Any],
    values: Mapping[str, Any],
    *,
    where: object = None,
    prefix: str = "",
    whole: type[Any] | None = None,
) -> Tree:
    """The values as the types that a settings dataclass asks for, which may be a part of a `whole` one."""
    hints, whole = get_type_hints(kind), whole or kind
    known = [field.name for field in fields(kind)]
    for name in values:
        if name not in known:
            _unknown(f"{prefix}{name}", [*names_of(whole), *(f"{prefix}{k}" for k in known)], where)
    return {name: _convert(value, hints[name], f"{prefix}{name}", where, whole) for name, value in values.items()}


def names_of(kind: type[Any], prefix: str = "") -> dict[str, Any]:
    """Every setting below a dataclass by its dotted name, with its type."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            found |= names_of(hint, f"{prefix}{name}.")  # type: ignore[arg-type]
        else:
            found[f"{prefix}{name}"] = hint
    return found


def parse(kind: type[Any], assignments: Mapping[str, Any]) -> Tree:
    """Turn `{"a.b": "value"}` into `{"a": {"b": value}}`, reading text by the type of the setting it is for."""
    known = names_of(kind)
    tree: Tree = {}
    for name, value in assignments.items():
        if name not in known:
            _unknown(name, list(known), None)
        branch = tree
        *path, last = name.split(".")
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = _read(value, known[name]) if isinstance(value, str) else value
    return tree


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Both trees as one; where both set a value, the upper one counts."""
    result = dict(below)
    for name, value in above.items():
        old = result.get(name)
        result[name] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree's values by their dotted names."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def _unknown(name: str, known: list[str], where: object) -> None:
    """Refuse a name, and say which of the known ones was meant, where that is plain: their last parts are compared."""
    leaf = _leaf(name)
    close = difflib.get_close_matches(leaf, sorted({_leaf(k) for k in known}), n=1, cutoff=ALIKE)
    meant = [k for k in known if k == USUAL.get(leaf)] or [k for k in known if _leaf(k) in close]
    near = difflib.get_close_matches(name, meant, n=1, cutoff=0)
    remedy = f"did you mean {near[0]}?" if near else "`satkgc train KG --show` lists them all"
    raise SatkgcError(f"unknown setting {name}", where=where, remedy=remedy)


def _leaf(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _options(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the one type."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _read(text: str, hint: Any) -> Any:
    """Text as the first of the hinted types that it can be; what fits none is left for `_convert` to refuse."""
    for option in _options(hint):
        if option is type(None) and text.lower() == "none":
            return None
        if option is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if option in (int, float):
            try:
                return option(text)
            except ValueError:
                continue
    return text


def _convert(value: Any, hint: Any, name: str, where: object, whole: type[Any]) -> Any:
    if isinstance(value, np.generic):  # a cell of a table, or of an array of seeds
        value = value.item()
    for option in _options(hint):
        if is_dataclass(option) and isinstance(value, Mapping):
            return build(option, value, where=where, prefix=f"{name}.", whole=whole)  # type: ignore[arg-type]
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if option is type(None) and (value is None or value == "none"):  # TOML has no null
            return None
        if option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(option, type) and type(value) is option:
            return value
    expected = " or ".join(_describe(option) for option in _options(hint))
    raise SatkgcError(f"{name} is {value!r}", where=where, remedy=f"it takes {expected}")


def _describe(option: Any) -> str:
    if get_origin(option) is Literal:
        return "one of " + ", ".join(map(str, get_args(option)))
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"}
    return names.get(option, "a table of settings")
