"""A server of property graphs that speaks Bolt and Cypher, as Neo4j does, through its official driver."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from satkgc.errors import SatkgcError
from satkgc.version import __version__

SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
USER, PASSWORD = "NEO4J_USERNAME", "NEO4J_PASSWORD"
NETRC = "NETRC"  # the file, where it is not ~/.netrc
LOGIN = f"set {USER} and {PASSWORD}, or give the host a line in ~/.netrc"
CONNECT = 15.0  # seconds for a connection
RETRY = 30.0  # seconds in which what fails on the way is tried again


def is_bolt(source: object) -> bool:
    """Whether a source is a server: `bolt://host:7687/database`, also bolt+s, neo4j and the like."""
    return isinstance(source, str) and source.lower().partition("://")[0] in SCHEMES and "://" in source


@dataclass(frozen=True)
class BoltServer:
    """Where a property graph is. The address has no password: that is in the environment, or in ~/.netrc."""

    address: str
    database: str | None  # None: the server's default
    login: tuple[str, str] | None = field(repr=False, default=None)

    @classmethod
    def of(cls, source: str) -> BoltServer:
        """From `bolt://host:7687/database`."""
        try:
            parts = urlsplit(source)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        database = unquote(parts.path.strip("/")) if host is not None else ""
        if not is_bolt(source) or host is None or re.search(r"[\x00-\x20/]", database + host) or parts.query:
            raise SatkgcError("this is no address of a Bolt server", remedy="write bolt://host:7687/database")
        if parts.username is not None:
            what = "the address has a user in it, which others could see"
            raise SatkgcError(what, remedy=f"leave it out and {LOGIN}")
        place = f"[{host}]" if ":" in host else host
        address = f"{parts.scheme}://{place}" if port is None else f"{parts.scheme}://{place}:{port}"
        return cls(address, database or None, _login(host))

    @property
    def shown(self) -> str:
        return self.address if self.database is None else f"{self.address}/{self.database}"

    @contextmanager
    def session(self, rows: int = 1000) -> Iterator[Any]:
        """A session of the driver, which takes so many rows at a time; what goes wrong in it is told in one line."""
        if find_spec("neo4j") is None:
            raise SatkgcError("Bolt needs neo4j, the driver", where=self.shown, remedy="pip install 'satkgc[bolt]'")
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        try:
            with neo4j.GraphDatabase.driver(
                self.address,
                auth=self.login,
                user_agent=f"satkgc/{__version__}",
                connection_timeout=CONNECT,
                max_transaction_retry_time=RETRY,
            ) as driver:
                driver.verify_connectivity()
                with driver.session(database=self.database, fetch_size=rows) as session:
                    yield session
        except (Neo4jError, DriverError, OSError) as error:
            what, remedy = self._refusal(error)
            raise SatkgcError(what, where=self.shown, remedy=remedy) from None

    def _refusal(self, error: Exception) -> tuple[str, str]:
        """What is wrong, and what to do."""
        from neo4j.exceptions import AuthError, Neo4jError

        if isinstance(error, AuthError):
            remedy = LOGIN if self.login is None else f"correct the login: {LOGIN}"
            return f"the server does not let us in ({_said(error)})", remedy
        if isinstance(error, Neo4jError):
            unknown = "database" in (error.code or "").lower()
            remedy = "name it behind the address: bolt://host:7687/database" if unknown else "try it there by hand"
            return f"the server does not take this: {_said(error)}", remedy
        what = "a web server answers there" if "looks like HTTP" in str(error) else _said(error)
        return f"no connection: {what}", "check host and port (7687 is usual), and whether it wants TLS: bolt+s://"


def _login(host: str) -> tuple[str, str] | None:
    """From the environment, else what ~/.netrc has of this very host."""
    user, password = os.environ.get(USER), os.environ.get(PASSWORD)
    if password is not None:
        return user or "neo4j", password
    if user is not None:
        raise SatkgcError(f"{USER} is set and {PASSWORD} is not", remedy=f"set {PASSWORD} too")
    file = Path(os.environ.get(NETRC) or Path.home() / ".netrc")
    if not file.is_file():
        return None
    try:
        found = netrc(str(file)).hosts.get(host)
    except (NetrcParseError, OSError, UnicodeDecodeError) as error:
        what = f"cannot read logins ({getattr(error, 'msg', error)})"
        raise SatkgcError(what, where=file, remedy="correct it there") from None
    return (found[0], found[2] or "") if found else None


def _said(error: Exception) -> str:
    """What happened, in one line."""
    lines = str(getattr(error, "message", None) or error).strip().splitlines() or [type(error).__name__]
    reason = re.search(r"\(reason (?:\[Errno -?\d+\] )?(.*)\)", lines[-1])
    text = reason[1] if reason else lines[-1]
    return " ".join(re.sub(r"Resolved\w+\(\('([^']*)', (\d+).*?\)\)", r"\1:\2", text).split())[:200]
