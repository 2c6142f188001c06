"""The guard against entities that grow sees every declaration, however the stream is cut up."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.kg.readers.xml_guard import LONGEST, GuardedXml

sizes = st.lists(st.integers(1, 60), min_size=1, max_size=20)


def pass_through(data: bytes, sizes: list[int]) -> bytes:
    guarded, out, turn = GuardedXml(io.BytesIO(data), "g.rdf"), b"", 0
    while part := guarded.read(sizes[turn % len(sizes)]):
        out += part
        turn += 1
    return out


@given(sizes, st.integers(0, 40))
def test_harmless_bytes_pass_unchanged(sizes: list[int], gap: int) -> None:
    declared = b"<!ENTITY owl \"http://owl#\"> <!ENTITY\n% p 'x &lt; &#38; 5%'><!ENTITY ext SYSTEM 'file'>"
    data = b"<!" * gap + declared + b"<a>&owl; <!ENT &x;</a><!ENTIT"
    assert pass_through(data, sizes) == data


@pytest.mark.parametrize(
    "declaration",
    [
        b'<!ENTITY b "&a;&a;">',
        b"<!ENTITY  b\t'x &a;'>",
        b'<!ENTITY % b "%a;">',
        b'<!ENTITY b "' + b"x" * (LONGEST + 1) + b'">',
        b'<!ENTITY b "' + b"x" * 1200,
        b"<!ENTITY " + b"x" * 1200,
    ],
)
@given(sizes=sizes, gap=st.integers(0, 40))
def test_growing_entities_are_refused_before_they_are_passed_on(declaration: bytes, sizes: list[int], gap: int) -> None:
    data = b"<" * gap + b'<!ENTITY a "ha">' + declaration + b"<a>&b;</a>"
    with pytest.raises(SatkgcError, match="an XML entity is long or made of other entities"):
        pass_through(data, sizes)
