"""Text from data on a terminal: what would move its cursor, retitle it or turn its letters round is shown instead."""

from __future__ import annotations

import logging
import re

# Control characters but tab and newline, their eight-bit twins, separators of lines, and overrides of direction.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """The text with such characters written out, as JSON writes them: JSON stays the same JSON."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class CleanFormatter(logging.Formatter):
    """Lines of the log, which may quote names."""

    def format(self, record: logging.LogRecord) -> str:
        """As ever, and cleaned."""
        return clean(super().format(record))
