"""Downloads over a real connection that is cut, lies and changes its mind."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from range_server import Site, serving

from satkgc import SatkgcError
from satkgc.kg.download import PATIENCE, fetch

DATA = bytes(range(256)) * 400
SHA256 = hashlib.sha256(DATA).hexdigest()


def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    with serving(Site({"/f": DATA})) as site:
        for _ in range(2):
            assert fetch(f"{site.url}/f", tmp_path / "deep" / "f", SHA256).read_bytes() == DATA
    assert site.requests == [("/f", None)]
    assert os.listdir(tmp_path / "deep") == ["f"]


@pytest.mark.parametrize("marks", [True, False])
def test_a_download_goes_on_where_it_was_cut(tmp_path: Path, marks: bool) -> None:
    cut = len(DATA) // (2 * PATIENCE)  # more often than we have patience for, but each time there is something new
    with serving(Site({"/f": DATA}, cut_after=cut, marks=marks)) as site:
        assert fetch(f"{site.url}/f", tmp_path / "f", SHA256, pause=0).read_bytes() == DATA
    assert [start for _, start in site.requests] == [None, *(f"bytes={i}-" for i in range(cut, len(DATA), cut))]


def test_a_later_run_goes_on_where_an_earlier_one_gave_up(tmp_path: Path) -> None:
    with serving(Site({"/f": DATA}, cut_after=0)) as site:
        (tmp_path / "f.part").write_bytes(DATA[:5000])
        (tmp_path / "f.part.version").write_text(site.etag("/f"))
        with pytest.raises(SatkgcError, match="cannot be downloaded"):
            fetch(f"{site.url}/f", tmp_path / "f", pause=0)
        assert len(site.requests) == PATIENCE
        site.cut_after = None
        assert fetch(f"{site.url}/f", tmp_path / "f", SHA256, pause=0).read_bytes() == DATA
        assert site.requests[-1] == ("/f", "bytes=5000-")


def test_a_file_that_changed_meanwhile_starts_anew(tmp_path: Path) -> None:
    with serving(Site({"/f": DATA})) as site:
        (tmp_path / "f.part").write_bytes(b"of the old version")
        (tmp_path / "f.part.version").write_text('"old"')
        assert fetch(f"{site.url}/f", tmp_path / "f", pause=0).read_bytes() == DATA


@pytest.mark.parametrize("held", [DATA + b"more", DATA])
def test_more_than_there_is_starts_anew(tmp_path: Path, held: bytes) -> None:
    with serving(Site({"/f": DATA})) as site:
        (tmp_path / "f.part").write_bytes(held)
        assert fetch(f"{site.url}/f", tmp_path / "f", SHA256, pause=0).read_bytes() == DATA


def test_a_server_without_ranges_is_asked_for_all_again(tmp_path: Path) -> None:
    with serving(Site({"/f": DATA}, ranges=False)) as site:
        (tmp_path / "f.part").write_bytes(DATA[:777])
        assert fetch(f"{site.url}/f", tmp_path / "f", SHA256, pause=0).read_bytes() == DATA


def test_what_does_not_match_its_checksum_is_thrown_away(tmp_path: Path) -> None:
    with serving(Site({"/f": DATA[::-1]})) as site, pytest.raises(SatkgcError, match="another checksum"):
        fetch(f"{site.url}/f", tmp_path / "f", SHA256)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".version"]


def test_a_file_that_is_there_must_match_its_checksum_too(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(DATA)
    assert fetch("http://nowhere.invalid/f", tmp_path / "f", SHA256) == tmp_path / "f"
    (tmp_path / "f").write_bytes(DATA[:-1])
    with pytest.raises(SatkgcError, match="f: not the published file: its checksum differs; remove it"):
        fetch("http://nowhere.invalid/f", tmp_path / "f", SHA256)
    assert (tmp_path / "f").exists()  # it may be somebody's own


@pytest.mark.parametrize("lengths", [True, False])
def test_a_file_of_more_than_it_may_have_is_refused_before_it_is_kept(tmp_path: Path, lengths: bool) -> None:
    """By the length that the server says, at once; without one when there is more."""
    with serving(Site({"/f": DATA}, lengths=lengths)) as site:
        with pytest.raises(SatkgcError, match="the file has more than 0 MiB; if you trust it, download it yourself"):
            fetch(f"{site.url}/f", tmp_path / "f", most=len(DATA) - 1)
        assert [path.stat().st_size for path in tmp_path.glob("f.part")] == ([] if lengths else [0])
        assert fetch(f"{site.url}/f", tmp_path / "g", most=len(DATA)).read_bytes() == DATA
    assert not (tmp_path / "f").exists()


def test_a_checksum_may_be_the_name_that_git_gives_to_a_content(tmp_path: Path) -> None:
    """As `git hash-object` prints it."""
    (tmp_path / "f").write_bytes(b"hello\n")
    fetch("http://nowhere.invalid/f", tmp_path / "f", "ce013625030ba8dba906f756967f9e9ca394464a")
    with pytest.raises(SatkgcError, match="its checksum differs"):
        fetch("http://nowhere.invalid/f", tmp_path / "f", "ce013625030ba8dba906f756967f9e9ca394464b")


def test_what_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with serving(Site({})) as site, pytest.raises(SatkgcError, match="the server answered 404"):
        fetch(f"{site.url}/f", tmp_path / "f")
    assert len(site.requests) == 1
    with pytest.raises(SatkgcError, match=r"cannot be downloaded: .*refused"):
        fetch(f"{site.url}/f", tmp_path / "f", pause=0)  # nobody listens there any more
