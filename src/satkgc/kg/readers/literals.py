"""Numbers, dates and texts that a source states of an entity, as words that go behind its description.

`born 1815-12-10; population 3,769,495`: the predicate's name and the value, for a language model to read.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

from satkgc.errors import SatkgcError
from satkgc.kg.readers.options import PREFIXES, ReadOptions, expand

ALL = "all"
MOST = 16  # values of an entity that are kept
LETTERS = 400  # characters of all of them together
LONGEST = 100  # characters of one; a longer text is cut at a word
XSD = "http://www.w3.org/2001/XMLSchema#"
WHOLE = frozenset(
    XSD + name
    for name in (
        "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
        "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
    )
)  # fmt: skip
FRACTIONS = frozenset(XSD + name for name in ("decimal", "double", "float"))
TIMES = frozenset(XSD + name for name in ("date", "dateTime", "dateTimeStamp"))
TEXTS = frozenset([XSD + "string", PREFIXES["rdf"] + "langString"])
PLAIN = frozenset(XSD + name for name in ("gYear", "gYearMonth", "gMonthDay", "time", "duration", "boolean", "anyURI"))


class Literals:
    """Those that were chosen, by node, in the order of the source; a predicate may be the name of a property."""

    def __init__(self, options: ReadOptions) -> None:
        self._chosen = set(options.literals) - {ALL}
        self._all = ALL in options.literals
        self._languages = [language.lower() for language in options.languages]
        self._predicates: dict[str, bool] = {}
        self._used: set[str] = set()
        self._values: dict[int, list[tuple[str, str]]] = {}
        self.cut = 0  # values that were shortened or came too late

    def wants(self, predicate: str, prefixes: Mapping[str, str] = PREFIXES) -> bool:
        """Whether its literals are to be read."""
        if not (self._chosen or self._all):
            return False
        for chosen in self._chosen - self._used:
            if predicate in (chosen, expand(chosen, prefixes)):
                self._used.add(chosen)
                self._predicates[predicate] = True
        return self._all or predicate in self._predicates

    def offer(self, node: int, predicate: str, text: str, datatype: str, language: str | None = None) -> bool:
        """Take a value in, if it can be said in words and its language is wanted; whether it was."""
        value = format_literal(text[: 2 * LONGEST], datatype)
        if value is None or not self._speaks(language):
            return False
        if len(value) > LONGEST or len(text) > 2 * LONGEST:
            self.cut += 1
            value = value[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
        values = self._values.setdefault(node, [])
        if (predicate, value) not in values:
            if len(values) < MOST:
                values.append((predicate, value))
            else:
                self.cut += 1
        return True

    def described(self, node: int, description: str, names: Mapping[str, str]) -> str:
        """A description with the values of a node behind it, by what their predicates are called."""
        parts: list[str] = []
        for predicate, value in self._values.get(node, ()):
            part = f"{names[predicate]} {value}"
            if len("; ".join([*parts, part])) <= LETTERS:
                parts.append(part)
        return "; ".join(filter(None, [description.rstrip(" ;"), *parts])) if parts else description

    @property
    def predicates(self) -> set[str]:
        """Those that gave a value."""
        return {predicate for values in self._values.values() for predicate, _ in values}

    def refuse_unused(self, predicates: Iterable[str], shown: str) -> None:
        """Refuse a predicate that was chosen and that no statement has."""
        for chosen in sorted(self._chosen - self._used):
            near = difflib.get_close_matches(chosen, list(predicates), n=3, cutoff=0.5)
            remedy = f"did you mean {' or '.join(near)}?" if near else "`satkgc kg inspect` names those of literals"
            raise SatkgcError(f"no statement has the predicate {chosen}", where=shown, remedy=remedy)

    def _speaks(self, language: str | None) -> bool:
        tag = (language or "").lower()
        return not tag or any(tag == own or (own and tag.startswith(f"{own}-")) for own in self._languages)


def format_literal(text: str, datatype: str) -> str | None:
    """A value as people write it: 1815-12-10, 3,769,495, 0.25; None for what is no number, date or text."""
    text = " ".join(text.split())
    if not text or datatype not in WHOLE | FRACTIONS | TIMES | TEXTS | PLAIN:
        return None
    if datatype in WHOLE | FRACTIONS:
        return _number(text)
    if datatype in TIMES:
        date = re.fullmatch(r"(-?\d{4,}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:\d\d)?", text)
        if date is None:
            return text
        return date[1] if date[2] in (None, "00:00") else f"{date[1]} {date[2]}"
    return text


def _number(text: str) -> str:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite() or abs(number.adjusted()) > 20:
        return text
    return f"{number:,f}".rstrip("0").rstrip(".") if "." in f"{number:f}" else f"{number:,f}"
