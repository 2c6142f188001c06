"""Settings are typed and frozen; what does not fit is refused in one line, with its full name and what it takes."""

from __future__ import annotations

import json
from typing import ClassVar, Literal

import numpy as np
import pytest
from pydantic import Field, SerializeAsAny, ValidationError, field_validator, model_validator

from satkgc.errors import SatkgcError
from satkgc.settings import Settings, build, flatten, merge, names_of, parse


class Oven(Settings):
    section: ClassVar[str] = "kitchen.oven"

    degrees: int = Field(default=180, ge=50, le=300)
    """Celsius."""
    share: float = Field(default=0.5, gt=0, lt=1)
    fan: bool = False
    shelf: Literal["top", "middle"] = "middle"
    minutes: float | None = None


class Kitchen(Settings):
    section: ClassVar[str] = "kitchen"

    cook: str = "Ann"
    plates: int = 2
    oven: Oven = Oven()

    @field_validator("plates")
    @classmethod
    def _even(cls, plates: int) -> int:
        if plates % 2:
            raise ValueError("set an even number: they come in pairs")
        return plates

    @model_validator(mode="after")
    def _cook_and_fan(self) -> Kitchen:
        if self.cook == "Bob" and self.oven.fan:
            raise ValueError("kitchen.cook is Bob, who fears fans; set kitchen.oven.fan to false")
        return self


class House(Settings):
    kitchen: Kitchen = Kitchen()


ALIASES = {"chef": "kitchen.cook", "temperature": "kitchen.oven.degrees"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"degrees": "hot"}, "kitchen.oven.degrees is 'hot'; it takes a whole number, 50 or more and at most 300"),
        ({"degrees": 1.5}, "kitchen.oven.degrees is 1.5; it takes a whole number, 50 or more and at most 300"),
        ({"degrees": True}, "kitchen.oven.degrees is True; it takes a whole number, 50 or more and at most 300"),
        ({"degrees": 20}, "kitchen.oven.degrees is 20; set it to 50 or more and at most 300"),
        ({"degrees": 301}, "kitchen.oven.degrees is 301; set it to 50 or more and at most 300"),
        ({"share": 1}, "kitchen.oven.share is 1; set it to more than 0 and less than 1"),
        ({"share": True}, "kitchen.oven.share is True; it takes a number, more than 0 and less than 1"),
        ({"share": float("nan")}, "kitchen.oven.share is nan; it takes a number, more than 0 and less than 1"),
        ({"fan": 1}, "kitchen.oven.fan is 1; it takes true or false"),
        ({"fan": "yes"}, "kitchen.oven.fan is 'yes'; it takes true or false"),
        ({"shelf": "floor"}, "kitchen.oven.shelf is 'floor'; it takes one of top, middle"),
        ({"minutes": "long"}, "kitchen.oven.minutes is 'long'; it takes a number or none"),
        ({"minute": 5}, "unknown setting kitchen.oven.minute; did you mean kitchen.oven.minutes?"),
        ({"zzz": 5}, "unknown setting kitchen.oven.zzz; `satkgc train KG --show` lists them all"),
    ],
)
def test_a_bad_value_is_refused_by_name_with_what_it_takes(settings, message):
    with pytest.raises(SatkgcError) as refusal:
        Oven(**settings)
    assert str(refusal.value) == message
    with pytest.raises(SatkgcError) as refusal:
        Kitchen(oven=settings)  # as a recipe has it: a table in a table
    assert str(refusal.value) == message


def test_rules_that_types_cannot_say():
    with pytest.raises(SatkgcError, match=r"^kitchen\.plates is 3; set an even number: they come in pairs$"):
        Kitchen(plates=3)
    with pytest.raises(SatkgcError, match=r"^kitchen\.cook is Bob, who fears fans; set kitchen\.oven\.fan to false$"):
        Kitchen(cook="Bob", oven={"fan": True})
    with pytest.raises(SatkgcError, match=r"^kitchen\.oven is 3; it takes a table of settings$"):
        Kitchen(oven=3)


def test_what_fits_is_taken():
    oven = Oven(degrees=np.int32(200), share=np.float32(0.25), fan=np.bool_(True), minutes=5)
    assert (oven.degrees, oven.share, oven.fan, oven.minutes) == (200, 0.25, True, 5.0)
    assert [type(value) for value in dict(oven).values()] == [int, float, bool, str, float]
    json.dumps(oven.model_dump())
    assert Oven(minutes="none").minutes is None  # TOML has no null
    assert Kitchen(oven=oven).oven == oven


def test_a_copy_with_changes_is_checked_like_a_new_one_and_the_old_one_stays():
    kitchen = Kitchen(oven={"degrees": 200})
    assert kitchen.replace(cook="Cy") == Kitchen(cook="Cy", oven={"degrees": 200})
    assert kitchen.cook == "Ann"
    with pytest.raises(SatkgcError, match=r"kitchen\.plates is 5"):
        kitchen.replace(plates=5)
    with pytest.raises(SatkgcError, match=r"unknown setting kitchen\.cok; did you mean kitchen\.cook\?"):
        kitchen.replace(cok="Cy")
    with pytest.raises(ValidationError, match="frozen"):
        kitchen.cook = "Cy"


def test_settings_are_explained_beside_them():
    assert Oven.model_fields["degrees"].description == "Celsius."


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"kitchen": {"oven": {"degres": 1}}}, "did you mean kitchen.oven.degrees?"),
        ({"kitchen": {"degrees": 1}}, "unknown setting kitchen.degrees; did you mean kitchen.oven.degrees?"),
        ({"kitchen": {"chef": "x"}}, "unknown setting kitchen.chef; did you mean kitchen.cook?"),
        ({"temperature": 1}, "unknown setting temperature; did you mean kitchen.oven.degrees?"),
        ({"kitchn": {"cook": "x"}}, "unknown setting kitchn.cook; did you mean kitchen.cook?"),
        ({"qqqq": 1}, "unknown setting qqqq; `satkgc train KG --show` lists them all"),
        ({"kitchen": 3}, "kitchen is 3; it takes a table of settings"),
        ({"kitchen": {"plates": 7}}, "kitchen.plates is 7; set an even number"),
    ],
)
def test_a_tree_is_told_where_it_is_wrong_and_what_it_may_have_meant(tree, message):
    with pytest.raises(SatkgcError) as refusal:
        build(House, tree, where="mine.toml", aliases=ALIASES)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith("mine.toml: ")


def test_a_table_that_is_set_to_a_value_is_told_from_an_unknown_setting():
    message = r"^kitchen\.oven is a table of settings; set one of them, such as kitchen\.oven\.degrees$"
    with pytest.raises(SatkgcError, match=message):
        parse(House, {"kitchen.oven": "hot"}, ALIASES)


def test_an_empty_table_of_a_wrong_name_is_refused_too():
    with pytest.raises(SatkgcError, match=r"unknown setting kitchn; did you mean kitchen\?"):
        build(House, {"kitchn": {}}, aliases=ALIASES)


def test_overrides_are_read_by_the_type_of_their_setting():
    overrides = {
        "kitchen.oven.degrees": "200",
        "kitchen.oven.share": "1e-1",
        "kitchen.oven.fan": "TRUE",
        "kitchen.oven.minutes": "none",
        "kitchen.cook": "5",  # text stays text
        "kitchen.plates": 4,
    }
    tree = parse(House, overrides, ALIASES)
    assert build(House, tree, aliases=ALIASES).kitchen == Kitchen(
        cook="5", plates=4, oven=Oven(degrees=200, share=0.1, fan=True)
    )
    with pytest.raises(SatkgcError, match=r"unknown setting kitchen\.ovn\.fan; did you mean kitchen\.oven\.fan\?"):
        parse(House, {"kitchen.ovn.fan": "true"}, ALIASES)
    with pytest.raises(SatkgcError, match=r"kitchen\.oven\.degrees is '2x'; it takes a whole number"):
        build(House, parse(House, {"kitchen.oven.degrees": "2x"}, ALIASES), aliases=ALIASES)


class Stove(Settings):
    section: ClassVar[str] = "stove"
    kind: str = "hob"

    @classmethod
    def variant(cls, values):
        kinds = {"hob": Hob, "grill": Grill}
        if (kind := values.get("kind", "hob")) not in kinds:
            raise SatkgcError(f"stove.kind is {kind!r}", remedy="it takes one of hob, grill")
        return kinds[kind]


class Hob(Stove):
    kind: Literal["hob"] = "hob"
    rings: int = 4


class Grill(Stove):
    kind: Literal["grill"] = "grill"
    coal: bool = True


class Camp(Settings):
    stove: SerializeAsAny[Stove] = Hob()

    @field_validator("stove", mode="before")
    @classmethod
    def _of_kind(cls, values):
        return Stove.variant(values)(**values) if isinstance(values, dict) else values


def test_a_table_may_be_one_of_several_kinds():
    assert set(names_of(Camp)) == {"stove.kind", "stove.rings"}
    assert set(names_of(Camp, tree={"stove": {"kind": "grill"}})) == {"stove.kind", "stove.coal"}
    tree = parse(Camp, {"stove.coal": "false", "stove.kind": "grill"}, {})
    assert build(Camp, tree, aliases={}).stove == Grill(coal=False)
    assert parse(Camp, {"stove.coal": "false"}, {}, below=tree) == {"stove": {"coal": False}}
    assert build(Camp, {"stove": {"rings": 3}}, aliases={}).model_dump() == {"stove": {"kind": "hob", "rings": 3}}
    for stove, message in [
        ({"kind": "fire"}, "stove.kind is 'fire'; it takes one of hob, grill"),
        ({"kind": "grill", "rings": 3}, "unknown setting stove.rings"),
        ({"kind": "hob", "rings": "x"}, "stove.rings is 'x'; it takes a whole number"),
        (3, "stove is 3; it takes a table of settings"),
    ]:
        with pytest.raises(SatkgcError) as refusal:
            build(Camp, {"stove": stove}, where="mine.toml", aliases={})
        assert str(refusal.value).split("; `")[0] == f"mine.toml: {message}"
    with pytest.raises(SatkgcError, match=r"unknown setting stove\.rings"):
        parse(Camp, {"stove.rings": "3"}, {}, below=tree)


def test_trees():
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 5}, "d": {"e": 1}}) == {
        "a": {"b": 5, "c": 2},
        "d": {"e": 1},
    }
    below = {"a": {"kind": "x", "c": 2}}
    assert merge(below, {"a": {"kind": "x", "b": 1}}) == {"a": {"kind": "x", "c": 2, "b": 1}}
    assert merge(below, {"a": {"kind": "y", "b": 1}}) == {"a": {"kind": "y", "b": 1}}  # x's settings are not y's
    assert flatten({"a": {"b": {"c": 1}}, "d": 2}) == {"a.b.c": 1, "d": 2}
    assert set(flatten(House().model_dump())) == set(names_of(House))
