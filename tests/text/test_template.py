"""Where special tokens go, against each tokenizer's own encoding of other texts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from satkgc.errors import SatkgcError
from satkgc.text.template import Template

sys.path.insert(0, str(Path(__file__).parent))
from tokenizers_at_hand import NAMES, tokenizer_named


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("texts", [("the tree of knowledge",), ("a genus", "has part"), ("", "part")])
def test_laid_out_as_the_tokenizer_does(name: str, texts: tuple[str, ...]) -> None:
    tokenizer = tokenizer_named(name)
    template = Template.learn(tokenizer, pair=len(texts) == 2)
    parts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    if len(parts) == 1:
        parts.append([])
    pieces = [template.before, parts[0], template.between, parts[1], template.after]
    whole = tokenizer(*texts, return_token_type_ids=True)
    assert [int(token) for piece in pieces for token in piece] == whole["input_ids"]
    assert template.size == len(whole["input_ids"]) - len(parts[0]) - len(parts[1])
    if "token_type_ids" in tokenizer.model_input_names:
        laid = [int(kind) for piece, kind in zip(pieces, template.types, strict=True) for _ in piece]
        assert laid == whole["token_type_ids"]


def test_a_tokenizer_that_mixes_texts_up_is_refused() -> None:
    class Shuffling:
        model_input_names = ("input_ids",)

        def __call__(self, *texts: str, add_special_tokens: bool = True, **_: object) -> dict[str, list[int]]:
            ids = [ord(letter) for text in texts for letter in text]
            return {"input_ids": [0, *sorted(ids)] if add_special_tokens else ids}

    with pytest.raises(SatkgcError, match="Shuffling"):
        Template.learn(Shuffling(), pair=True)
