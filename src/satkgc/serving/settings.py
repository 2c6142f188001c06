"""Settings of a service, and the limits that hold for every request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from satkgc.errors import SatkgcError

MAX_BODY = 1 << 20  # bytes of a request's body
MAX_BODIES = 64 << 20  # bytes of the bodies of all requests together, without the first FREE_BODY of each
FREE_BODY = 16 << 10  # bytes: every question fits, and gets in whatever else is sent
BODY_SECONDS = 60.0  # for a body to arrive
HEADER_SECONDS = 20.0  # for a request's head to arrive, from the connection or its first byte on
WRITE_SECONDS = 60.0  # without a client's reading any of its answer
MAX_CONNECTIONS = 1_000  # open at once
SPARE_FILES = 128  # file descriptors that are left to everything else
MAX_K = 100  # answers to one question; the completer allows 1000, but a batch of 256 would be tens of megabytes
MAX_QUESTIONS = 256  # questions in one batch
MAX_ID = 2_000  # characters of an id: URLs are long
MAX_NAME = 300  # characters of a name or of a search
MAX_DESCRIPTION = 5_000  # characters of a new entity's description; the model reads the first tokens only
MAX_FACTS = 200  # facts of a new entity; the model reads the first tokens of them
MAX_AMONG = 1_000  # entities in a filter
MAX_NEIGHBOURS = 200  # neighbours in one entity's detail; `offset` gets the next ones
MAX_TYPES = 1_000  # types in one list
MAX_OFFSET = 1_000_000_000  # neighbours to skip
MAX_PROPOSALS = 200  # in one answer; `offset` gets the next ones
MAX_WAITING = 4_096  # questions in the queue; with more, the service is busy
DECISIONS_PATH = "/api/v1/decisions"  # the one place where something is written
MCP_PATH = "/mcp"  # of `satkgc mcp --http`
MAX_DOUBTS = 50  # doubted statements in one answer
MAX_CHECKED = 500  # statements that are looked at for it
MAX_CELL = 500  # characters of a description or a text in a tool's answer; what is longer is cut
MAX_REPLY = 500_000  # characters of a tool's answer
LOAD_SECONDS = 30.0  # that a tool waits for the model before it says that it still loads
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class ServiceSettings:
    """How one service behaves."""

    host: str = "127.0.0.1"
    port: int = 8321
    token: str | None = None  # that every request to the API must send, where one is set
    batch_size: int = 32  # questions answered by one pass of the model; 1 is no micro-batching
    batch_wait: float = 0.002  # seconds that a question waits for others
    allow_hosts: tuple[str, ...] = ()  # names of this host beyond the local ones, as a proxy passes them on
    access_log: bool = False  # a line for every request
    proposals: Path | None = None  # a table of `satkgc propose` to decide on; without one nothing is ever written

    def __post_init__(self) -> None:
        if self.token is not None and not self.token.strip():
            raise SatkgcError("the token is empty", remedy="set one, or use neither --token nor SATKGC_TOKEN")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise SatkgcError(
                "the token has characters that browsers cannot send", remedy="use printable ASCII characters"
            )
        for name in self.allow_hosts:
            if not name or set(name) & set("/:@ "):
                raise SatkgcError(f"{name!r} is not a host name", remedy="give the name alone, such as kg.example.org")

        if self.proposals is not None and self.token is None and (not self.local_only or self.allow_hosts):
            raise SatkgcError(
                "others than you could decide on the proposals", remedy="set a token, or serve this machine alone"
            )

    @property
    def local_only(self) -> bool:
        """Whether only requests to known names of this host are answered."""
        return self.token is None and self.host in LOOPBACK

    def without_batching(self) -> ServiceSettings:
        """The same, with each question answered by itself."""
        return replace(self, batch_size=1, batch_wait=0.0)
