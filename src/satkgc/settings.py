"""Typed settings: pydantic models whose refusals are one line, with the setting's full name and what it takes."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from satkgc.errors import SatkgcError

Tree = dict[str, Any]  # settings as a recipe has them: tables within tables
EMPTY: Mapping[str, Any] = types.MappingProxyType({})

SIMILARITY = 0.75  # how much a name must look like a setting to be suggested


class Settings(BaseModel):
    """Settings of one part of the system: frozen, checked, with every default explained beside it.

    A rule that annotations cannot say is a pydantic validator that raises ValueError("what to do").
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )
    section: ClassVar[str] = ""  # where they stand in a recipe: "sampling" for [sampling]

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**{name: _plain(value) for name, value in values.items()})
        except ValidationError as error:
            raise _refusal(type(self), error.errors()[0]) from None

    @classmethod
    def variant(cls, values: Mapping[str, Any]) -> type[Settings]:
        """The class that these values are for: this one, or, where there are several kinds, the one they name."""
        return cls

    def replace(self, **changes: Any) -> Self:
        """A copy with some settings changed, checked like a new one."""
        return type(self)(**{**dict(self), **changes})


Kind = TypeVar("Kind", bound=Settings)


def build(kind: type[Kind], tree: Mapping[str, Any], *, where: object = None, aliases: Mapping[str, str]) -> Kind:
    """Make settings of plain values. An unknown name is answered with the one that may be meant: one that looks like
    it, or the one that `aliases` has for what other programs call it."""
    try:
        known = names_of(kind, tree=tree)
        for name in flatten(tree):
            if name not in known and not any(setting.startswith(f"{name}.") for setting in known):
                raise unknown_setting(name, known, aliases)
        return kind(**tree)
    except SatkgcError as error:
        raise SatkgcError(error.what, where=where or error.where, remedy=error.remedy) from None


def names_of(kind: type[Settings], prefix: str = "", tree: Mapping[str, Any] = EMPTY) -> dict[str, Any]:
    """Every setting by its dotted name, with its annotation; where there are several kinds, of those in the tree."""
    names: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        tables = _tables(kind, name)
        values = values if isinstance(values := tree.get(name), Mapping) else EMPTY
        if (each := _table_of_each(kind, name)) is not None:
            for key, own in values.items():
                own = own if isinstance(own, Mapping) else EMPTY
                names |= names_of(each.variant(own), f"{prefix}{name}.{key}.", own)
            continue
        for table in tables:
            names |= names_of(table.variant(values), f"{prefix}{name}.", values)
        if not tables:
            names[f"{prefix}{name}"] = field.annotation
    return names


def parse(
    kind: type[Settings], overrides: Mapping[str, Any], aliases: Mapping[str, str], below: Mapping[str, Any] = EMPTY
) -> Tree:
    """Turn `{"a.b": "value"}` into `{"a": {"b": value}}`, reading text by the type of its setting.

    `below` is the tree that they are to be merged over: it says which kinds there are settings of.
    """
    kinds = {name: value for name, value in overrides.items() if _leaf(name) == "kind"}
    known = names_of(kind, tree=merge(below, _nest(kinds)))
    for name in overrides:
        if name not in known:
            raise unknown_setting(name, known, aliases)
    return _nest({n: _read(value, known[n]) if isinstance(value, str) else value for n, value in overrides.items()})


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Both trees as one; where both set a value, the upper one counts. A table of another kind replaces the lower one,
    whose settings it does not have."""
    result = dict(below)
    for name, value in above.items():
        old: Any = result.get(name)
        tables = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[name] = merge(old, value) if tables and value.get("kind", old.get("kind")) == old.get("kind") else value
    return result


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree's values by their dotted names."""
    values: dict[str, Any] = {}
    for name, value in tree.items():
        values |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return values


def _nest(values: Mapping[str, Any]) -> Tree:
    """The reverse of `flatten`."""
    tree: Tree = {}
    for name, value in values.items():
        branch = tree
        *path, last = name.split(".")
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = value
    return tree


def unknown_setting(name: str, known: Iterable[str], aliases: Mapping[str, str]) -> SatkgcError:
    """Which of the known settings is meant, where that is plain: the last parts of the names are compared."""
    known = list(known)
    tables = {".".join(setting.split(".")[: i + 1]) for setting in known for i in range(setting.count("."))}
    leaf = _leaf(name)
    if name in tables and aliases.get(leaf) not in known:
        own = next(setting for setting in known if setting.startswith(f"{name}."))
        return SatkgcError(f"{name} is a table of settings", remedy=f"set one of them, such as {own}")
    near = difflib.get_close_matches(leaf, sorted({_leaf(k) for k in [*known, *tables]}), n=1, cutoff=SIMILARITY)
    meant = [k for k in known if k == aliases.get(leaf)] or [k for k in [*known, *sorted(tables)] if _leaf(k) in near]
    best = difflib.get_close_matches(name, meant, n=1, cutoff=0)
    remedy = f"did you mean {best[0]}?" if best else "`satkgc train KG --show` lists them all"
    return SatkgcError(f"unknown setting {name}", remedy=remedy)


def _refusal(kind: type[Settings], error: ErrorDetails) -> SatkgcError:
    """A pydantic error as one line: the setting, its value, and what it takes."""
    if not error["loc"]:  # a validator of the whole: its message says what is wrong and, after a semicolon, what to do
        what, _, remedy = error["msg"].removeprefix("Value error, ").partition("; ")
        return SatkgcError(what, remedy=remedy or None)
    field = str(error["loc"][0])
    name = f"{kind.section}.{field}" if kind.section else field
    if error["type"] == "extra_forbidden":
        return unknown_setting(name, names_of(kind, f"{kind.section}." if kind.section else ""), {})
    what = f"{name} is {error['input']!r}"
    if error["type"] == "value_error":
        return SatkgcError(what, remedy=error["msg"].removeprefix("Value error, "))
    limits = _limits(kind.model_fields[field].metadata)
    if error["type"] in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        return SatkgcError(what, remedy=f"set it to {limits}")
    expected = " or ".join(dict.fromkeys(_describe(option) for option in _options(kind.model_fields[field].annotation)))
    return SatkgcError(what, remedy=f"it takes {expected}{f', {limits}' if limits else ''}")


def _limits(metadata: Iterable[Any]) -> str:
    """The bounds of a number in words."""
    words = {"gt": "more than {}", "ge": "{} or more", "lt": "less than {}", "le": "at most {}"}
    bounds = {name: getattr(part, name) for part in metadata for name in words if getattr(part, name, None) is not None}
    return " and ".join(words[name].format(f"{bounds[name]:g}") for name in words if name in bounds)


def _plain(value: Any) -> Any:
    """A value as recipes mean it: numpy's scalars are numbers, and "none" is None, since TOML has no null."""
    if isinstance(value, np.generic):
        return value.item()
    return None if isinstance(value, str) and value.lower() == "none" else value


def _options(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the one type."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _tables(kind: type[Settings], field: str) -> list[type[Settings]]:
    """The settings classes that a field may hold."""
    options = _options(kind.model_fields[field].annotation)
    return [option for option in options if isinstance(option, type) and issubclass(option, Settings)]


def _table_of_each(kind: type[Settings], field: str) -> type[Settings] | None:
    """The settings class of a field that is a table of tables by name."""
    annotation = kind.model_fields[field].annotation
    if get_origin(annotation) is not dict:
        return None
    value = get_args(annotation)[1]
    return value if isinstance(value, type) and issubclass(value, Settings) else None


def _read(text: str, annotation: Any) -> Any:
    """Text as the type that a setting has; what it cannot be read as stays text, to be refused by its name."""
    for option in _options(annotation):
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


def _describe(option: Any) -> str:
    if get_origin(option) is Literal:
        return "one of " + ", ".join(map(str, get_args(option)))
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"}
    return names.get(option, "a table of settings")


def _leaf(name: str) -> str:
    return name.rsplit(".", 1)[-1]
