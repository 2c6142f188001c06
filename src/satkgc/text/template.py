"""Where a tokenizer puts its special tokens, learnt from the tokenizer itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from satkgc.arrays import Int32, UInt8
from satkgc.errors import SatkgcError


@dataclass(frozen=True, eq=False)
class Template:
    """Special tokens around one text, `before A after`, or two, `before A between B after`, with segment numbers."""

    before: Int32
    between: Int32  # empty where there is one text
    after: Int32
    types: UInt8  # (5,) segment of before, A, between, B, after
    size: int  # special tokens in all

    @classmethod
    def learn(cls, tokenizer: Any, pair: bool) -> Template:
        """Encode a known text or pair and see what stands around it."""
        texts = ("first", "second") if pair else ("first",)
        has_types = "token_type_ids" in tokenizer.model_input_names
        whole = tokenizer(*texts, return_token_type_ids=has_types)
        ids, types = whole["input_ids"], whole.get("token_type_ids") or [0] * len(whole["input_ids"])
        spans, start = [], 0
        for text in texts:
            start = _find(tokenizer(text, add_special_tokens=False)["input_ids"], ids, start, tokenizer)
            spans.append((start, start + len(tokenizer(text, add_special_tokens=False)["input_ids"])))
            start = spans[-1][1]
        (a, a_end), (b, b_end) = spans[0], spans[-1]
        parts = [ids[:a], ids[a_end:b] if pair else [], ids[b_end:]]
        segments = [types[0], types[a], types[a_end] if pair and b > a_end else types[a], types[b], types[-1]]
        before, between, after = (np.array(part, np.int32) for part in parts)
        return cls(before, between, after, np.array(segments, np.uint8), sum(map(len, parts)))


def _find(part: list[int], whole: list[int], start: int, tokenizer: Any) -> int:
    for at in range(start, len(whole) - len(part) + 1):
        if whole[at : at + len(part)] == part:
            return at
    raise SatkgcError(
        f"cannot find a text in its own encoding by {type(tokenizer).__name__}",
        remedy="use a tokenizer that keeps texts whole between its special tokens, as BERT's, MPNet's and RoBERTa's do",
    )
