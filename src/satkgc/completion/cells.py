"""Cells of a table that people open in a spreadsheet, which takes some texts for formulas and computes them."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with the marks of a text that looked escaped already
_ESCAPED = re.compile(r"'+[=+\-@\t\r]")


def escape(text: str) -> str:
    """The text as a cell: an apostrophe before what would be a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape(cell: str) -> str:
    """The text of a cell that `escape` made."""
    return cell[1:] if _ESCAPED.match(cell) else cell
