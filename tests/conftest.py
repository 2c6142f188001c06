"""Fixtures that several packages share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models here are tiny: more threads only wait for one another
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # else what Milvus leaves behind may abort a child at its fork

import torch  # after these: it reads the number of threads

if not torch.cuda.is_available():  # Triton reads it when it is imported, and other packages may import that first
    os.environ.setdefault("TRITON_INTERPRET", "1")

# A shell starts what it runs in the background with Ctrl-C ignored, nohup has hang-ups ignored, and children inherit
# that: several tests send them.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


# Times are never asserted: a property's first example may compile a kernel.
settings.register_profile("satkgc", deadline=None)
settings.load_profile("satkgc")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """A test's name holds no file contents: a gzip carries the time, and workers must agree on what the tests are."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Graphs read by name are cached here, and nothing is written into the user's own cache."""
    os.environ["SATKGC_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark archives; tests that use it skip, saying so, where there is none."""
    for folder in (os.environ.get("SATKGC_DATA"), Path(__file__).parents[2] / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    pytest.skip("no benchmark archives: set SATKGC_DATA to a folder that holds them")


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory) -> Path:  # type: ignore[no-untyped-def]
    """A folder with a random BERT of two narrow layers and a tokenizer that spells: encodes in a millisecond."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("backbone") / "tiny-bert"
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,:;()'\"-_/"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "entity", "relation", "inverse", "the", "of", "a"]
    tokens = list(dict.fromkeys([*words, *letters, *(f"##{letter}" for letter in letters)]))
    BertTokenizer(vocab={token: i for i, token in enumerate(tokens)}).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            max_position_embeddings=64,
        )  # fmt: skip
        BertModel(config).save_pretrained(folder)
    return folder
