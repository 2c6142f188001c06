"""Tokenizers of several families: one from a package, one from a folder, and small ones trained on the spot."""

from __future__ import annotations

import os
from functools import lru_cache

import pytest

CORPUS = [
    "The tree of knowledge has part of a genus, a member of the species.",
    "inverse relation derivationally related form, hypernym; entity of a domain topic",
    "Ska is a music genre that originated in Jamaica in the late 1950s.",
]
NAMES = ["minilm", "mpnet", "roberta-like", "deberta-like"]


@lru_cache
def tokenizer_named(name: str):  # type: ignore[no-untyped-def]
    """A tokenizer by family; MPNet's needs its folder in SATKGC_MPNET."""
    if name == "minilm":
        from satkgc.models.text.backbone import load_tokenizer
        from satkgc.models.text.config import EncoderConfig

        return load_tokenizer("minilm", EncoderConfig())
    if name == "mpnet":
        if not os.path.isdir(os.environ.get("SATKGC_MPNET", "")):
            pytest.skip("no MPNet: set SATKGC_MPNET to a folder of all-mpnet-base-v2")
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(os.environ["SATKGC_MPNET"])
    return _byte_pairs() if name == "roberta-like" else _unigrams()


def _byte_pairs():  # type: ignore[no-untyped-def]
    """As RoBERTa: a space belongs to the word after it, pairs are <s> A </s></s> B </s>."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    core.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    )
    core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=["input_ids", "attention_mask"], **names)


def _unigrams():  # type: ignore[no-untyped-def]
    """As DeBERTa: words start with ▁, pairs are [CLS] A [SEP] B [SEP] with segments."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.Unigram())
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    core.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=80, special_tokens=special, unk_token="[UNK]"))
    core.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 1), ("[SEP]", 2)]
    )
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=inputs, **names)
