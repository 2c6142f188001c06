"""What users are meant to see when something is not as it should be."""

from __future__ import annotations

UNFINISHED = 3  # exit code of a command that has used up the time it was given; --resume goes on


class SatkgcError(Exception):
    """Something the user can put right: what is wrong, where it is, and what to do about it, in one line."""

    def __init__(self, what: str, *, where: object = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.remedy = remedy
        message = what if self.where is None else f"{self.where}: {what}"
        super().__init__(message if remedy is None else f"{message}; {remedy}")
