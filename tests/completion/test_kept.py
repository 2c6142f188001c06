"""What a stopped command has kept counts as it was written, or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satkgc.completion.kept import keep, open_kept
from satkgc.errors import SatkgcError

ARRAYS = {"triples": np.arange(12, dtype=np.int32).reshape(4, 3), "scores": np.linspace(0, 1, 4, dtype=np.float32)}


def test_no_altered_byte_and_no_cut_is_gone_on_with(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "state.npz"
    assert open_kept(file, "proposal", "so", tuple(ARRAYS)) is None
    assert not caplog.records
    keep(file, "so", 7, ARRAYS)
    content, refused = file.read_bytes(), 0
    damages = [content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :] for at in range(len(content))]
    for damage in (content, *damages, *(content[:cut] for cut in range(0, len(content), 7))):
        file.write_bytes(damage)
        kept = open_kept(file, "proposal", "so", tuple(ARRAYS))
        if kept is None:
            refused += 1
            continue
        assert kept[0] == 7
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(kept[1][name], array)
            assert kept[1][name].dtype == array.dtype
    assert refused > len(content) // 2
    assert f"{file}: the unfinished proposal that is here is damaged: it begins anew" in caplog.text
    file.write_bytes(content)
    with pytest.raises(SatkgcError, match="an unfinished proposal with other settings is here; repeat those settings"):
        open_kept(file, "proposal", "otherwise", tuple(ARRAYS))
