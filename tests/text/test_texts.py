"""Batches laid out from stored tokens equal what the tokenizer makes of the whole string."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.text import TextConfig, Texts, Tokens

sys.path.insert(0, str(Path(__file__).parent))
from tokenizers_at_hand import NAMES, tokenizer_named

WORDS = [
    "tree",
    "genus",
    "of",
    "the",
    "Ska",
    "music's",
    "(late)",
    "1950s,",
    "Zürich",
    "co-op",
    "東京",
    "U.S.",
    "naïve",
    "x;",
]
NUM_ENTITIES, NUM_RELATIONS = 40, 5
LONELY = 6  # the entity without a triple; its description is long


def worded_graph(seed: int = 0) -> KnowledgeGraph:
    """A random graph with texts of all lengths, repeated names, odd characters, a self-loop and one that is alone."""
    rng = np.random.default_rng(seed)

    def phrase(least: int, most: int) -> str:
        return " ".join(rng.choice(WORDS, rng.integers(least, most + 1)))

    names = [phrase(1, 3) for _ in range(NUM_ENTITIES)]
    descriptions = [phrase(0, 12) if i % 3 else phrase(20, 70) for i in range(NUM_ENTITIES)]
    descriptions[1], descriptions[2] = "", f"{names[2]} is  one"  # nothing to say; the name first, two spaces
    relations = [" ".join(rng.choice(["member", "of", "domain", "has part"], 1 + i)) for i in range(NUM_RELATIONS)]
    ids = [f"/base/some_topic/{i}./base/kind_{i}/leaf_of" for i in range(NUM_RELATIONS)]
    size = NUM_ENTITIES, NUM_RELATIONS, NUM_ENTITIES
    triples = np.stack([rng.integers(0, top, 150) for top in size], 1)
    triples[0] = 4, 0, 4
    triples[triples == LONELY] = 7
    return KnowledgeGraph.from_arrays(
        "worded",
        Vocabulary.build(
            "entity", pa.array([f"e{i}" for i in range(NUM_ENTITIES)]), pa.array(names), pa.array(descriptions)
        ),
        Vocabulary.build("relation", pa.array(ids), pa.array(relations), pa.array([""] * NUM_RELATIONS)),
        np.unique(triples, axis=0),
    )


def whole_text(  # type: ignore[no-untyped-def]
    kg: KnowledgeGraph,
    config: TextConfig,
    entity: int,
    exclude: int | None,
    exclude_relation: int | None = None,
    drop_neighbours: bool = False,
) -> str:
    """The entity's text as one string, written down from the rules and not from the code."""
    name, words = kg.entities.name(entity), kg.entities.description(entity).split()
    short = len(words) < config.short_words
    triples = kg.train if entity in kg.train[:, [0, 2]] else kg.inference
    joined = {(int(r), int(t)) for h, r, t in triples if h == entity}
    joined |= {(int(r) + NUM_RELATIONS, int(h)) for h, r, t in triples if t == entity}
    lists = short and not drop_neighbours and len(joined) > 0
    description = " ".join(
        words if config.neighbour_dropout and not lists else words[: config.description_words or None]
    )
    if description == name or description.startswith(name + " "):
        description = description[len(name) :].strip()
    text = f"{name}: {description}".strip()
    if not lists:
        return text
    shown = sorted(
        (d, other) for d, other in joined if other != entity and (other != exclude or exclude_relation not in (None, d))
    )
    if not config.neighbours_per_relation:
        listed = sorted({other for _, other in shown})[: config.neighbours]
        return " ".join([text, *(kg.entities.name(other) for other in listed)])
    for d in dict.fromkeys(d for d, _ in shown):
        names = [kg.entities.name(other) for e, other in shown if e == d]
        label = ("inverse " if d >= NUM_RELATIONS else "") + kg.relations.name(d % NUM_RELATIONS)
        text += f" ; {label} : {' , '.join(names[: config.neighbours_per_relation])}"
    return text


def first_relation(kg: KnowledgeGraph, entities, others):  # type: ignore[no-untyped-def]
    """The first directed relation that joins each of the entities to its other one; 0 where there is none."""
    both = np.concatenate([kg.train, kg.train[:, ::-1] + [0, NUM_RELATIONS, 0]])
    found = {(h, t): r for h, r, t in sorted(both.tolist(), key=lambda triple: -triple[1])}
    return np.array([found.get((int(e), int(o)), 0) for e, o in zip(entities, others, strict=True)])


CONFIGS = {
    "default": TextConfig(),
    "narrow": TextConfig(max_tokens=36, description_words=20),
    "two neighbours": TextConfig(neighbours=2),
    "whole descriptions": TextConfig(max_tokens=60, description_words=0, neighbours=0, short_words=0),
    "all neighbours": TextConfig(short_words=1000, neighbours=1000, max_tokens=120),
    "by relation": TextConfig(neighbours_per_relation=2, short_words=1000, max_tokens=120),
    "by relation, narrow": TextConfig(neighbours_per_relation=10, description_words=4, short_words=1000),
    "neighbour dropout": TextConfig(
        neighbours_per_relation=10, description_words=4, short_words=1000, neighbour_dropout=0.3
    ),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("setting", CONFIGS)
def test_equals_tokenising_the_whole_string(name: str, setting: str) -> None:
    kg, tokenizer, config = worded_graph(), tokenizer_named(name), CONFIGS[setting]
    texts = Texts(kg, tokenizer, config)
    heads = np.arange(3 * NUM_ENTITIES) % NUM_ENTITIES
    directed = (heads * 7) % (2 * NUM_RELATIONS)
    # A third excludes nobody, a third a neighbour, a third somebody who may be none.
    degree = kg.adjacency.degree[heads]
    first = np.array([kg.adjacency.neighbours_of(h)[0] if d else 0 for h, d in zip(heads, degree, strict=True)])
    exclude = np.select([np.arange(len(heads)) % 3 == 0, np.arange(len(heads)) % 3 == 1], [-1, first], heads // 2)
    # Half of those excluded are so under one relation only.
    relation = np.where(np.arange(len(heads)) % 2, directed, first_relation(kg, heads, exclude))
    excluded = {"exclude": exclude, **({"exclude_relation": relation} if config.neighbours_per_relation else {})}
    dropped = (np.arange(len(heads)) % 5 == 0) & (config.neighbour_dropout > 0)
    queries = texts.queries(heads, directed, **excluded, drop_neighbours=dropped)
    entities = texts.entities(heads, **excluded, drop_neighbours=dropped)
    types = "token_type_ids" in tokenizer.model_input_names
    for i, (head, d) in enumerate(zip(heads, directed, strict=True)):
        one = int(relation[i]) if "exclude_relation" in excluded else None
        text = whole_text(kg, config, int(head), int(exclude[i]), one, bool(dropped[i]))
        question = ("inverse " if d >= NUM_RELATIONS else "") + kg.relations.name(d % NUM_RELATIONS)
        for batch, pair, cut in ((queries, (text, question), "only_first"), (entities, (text,), True)):
            expected = tokenizer(*pair, truncation=cut, max_length=config.max_tokens, return_token_type_ids=types)
            span = slice(batch.ptr[i], batch.ptr[i + 1])
            assert batch.ids[span].tolist() == expected["input_ids"], text
            if types:
                assert batch.type_ids is not None
                assert batch.type_ids[span].tolist() == expected["token_type_ids"]
    assert (batch.type_ids is not None) == types
    if setting in ("default", "narrow"):
        assert queries.lengths.max() == config.max_tokens, "nothing was cut: the test shows too little"


@pytest.mark.parametrize("setting", ["all neighbours", "by relation"])
def test_who_is_not_in_train_names_neighbours_of_the_inference_split(setting: str) -> None:
    whole, tokenizer, config = worded_graph(), tokenizer_named("minilm"), CONFIGS[setting]
    trained = (whole.train[:, [0, 2]] < 25).all(1)  # some inference triples join new entities to old ones
    vocabularies = whole.entities, whole.relations
    kg = KnowledgeGraph.from_arrays("two", *vocabularies, whole.train[trained], inference=whole.train[~trained])
    assert np.isin(kg.inference[:, [0, 2]], kg.train[:, [0, 2]]).any()
    entities = Texts(kg, tokenizer, config).entities(np.arange(NUM_ENTITIES))
    for entity in range(NUM_ENTITIES):
        expected = tokenizer(whole_text(kg, config, entity, None), truncation=True, max_length=config.max_tokens)
        assert entities.ids[entities.ptr[entity] : entities.ptr[entity + 1]].tolist() == expected["input_ids"]


def test_the_answer_is_never_among_the_neighbours() -> None:
    kg, tokenizer = worded_graph(), tokenizer_named("minilm")
    texts = Texts(kg, tokenizer, TextConfig(max_tokens=512, neighbours=1000, short_words=1000, description_words=1))
    heads, _, tails = kg.train.T
    with_answer, without_answer = texts.entities(heads), texts.entities(heads, exclude=tails)
    shorter = with_answer.lengths - without_answer.lengths
    name_length = [len(tokenizer(kg.entities.name(t), add_special_tokens=False)["input_ids"]) for t in tails]
    assert (shorter == np.where(heads == tails, 0, name_length)).all()


def test_relations_are_never_cut_and_too_long_ones_refused() -> None:
    kg, tokenizer = worded_graph(), tokenizer_named("minilm")
    longest = max(
        len(tokenizer(f"inverse {n.as_py()}", add_special_tokens=False)["input_ids"]) for n in kg.relations.names
    )
    Texts(kg, tokenizer, TextConfig(max_tokens=longest + 4))
    with pytest.raises(SatkgcError, match=r"model\.text\.max_tokens"):
        Texts(kg, tokenizer, TextConfig(max_tokens=longest + 3))


def test_new_entities_read_like_old_ones() -> None:
    kg, tokenizer = worded_graph(), tokenizer_named("minilm")
    texts = Texts(kg, tokenizer, TextConfig(neighbours=0))
    pairs = [(kg.entities.name(i), kg.entities.description(i)) for i in range(NUM_ENTITIES)]
    directed = np.arange(NUM_ENTITIES) % (2 * NUM_RELATIONS)
    for new, old in (
        (texts.new_entities(pairs), texts.entities(range(NUM_ENTITIES))),
        (texts.new_entities(pairs, directed), texts.queries(range(NUM_ENTITIES), directed)),
        (texts.new_entity(*pairs[3]), texts.entities([3])),
    ):
        assert np.array_equal(new.ids, old.ids)
        assert np.array_equal(new.ptr, old.ptr)
    assert len(texts.new_entities([])) == 0


@pytest.mark.parametrize(
    "setting",
    [
        "default",
        "narrow",
        "two neighbours",
        "all neighbours",
        "by relation",
        "by relation, narrow",
        "neighbour dropout",
    ],
)
def test_a_new_entity_with_an_old_one_s_facts_reads_like_it(setting: str) -> None:
    kg, config = worded_graph(), CONFIGS[setting]
    texts = Texts(kg, tokenizer_named("minilm"), config)
    both = np.concatenate([kg.train, kg.train[:, ::-1] + [0, NUM_RELATIONS, 0]])
    for entity in range(NUM_ENTITIES):
        facts = sorted({(int(r), int(t)) for h, r, t in both if h == entity and t != entity})
        if not config.neighbours_per_relation:
            facts = [(0, other) for other in sorted({other for _, other in facts})]
        near = [(directed, kg.entities.name(other)) for directed, other in facts]
        words = kg.entities.name(entity), kg.entities.description(entity)
        assert texts.new_entity(*words, near).ids.tolist() == texts.entities([entity]).ids.tolist()
        query = texts.new_entities([words], [3], [near])
        assert query.ids.tolist() == texts.queries([entity], [3]).ids.tolist()


def test_graph_without_triples() -> None:
    kg = worded_graph()
    bare = KnowledgeGraph.from_arrays("bare", kg.entities, kg.relations, np.empty((0, 3)))
    texts = Texts(bare, tokenizer_named("minilm"))
    assert len(texts.entities([0, 1])) == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (([0], [2 * NUM_RELATIONS]), r"there is no 10 among 10 directed relations; give indices from 0 to 9"),
        (([0], [-1]), "there is no -1 among 10 directed relations"),
        (([NUM_ENTITIES], [0]), "there is no 40 among 40 entities"),
        (([-1], [0]), "there is no -1 among 40 entities"),
        (([0.5], [0]), "numbers of the type float64 are no indices; give whole ones"),
        (([[0]], [0]), r"entities of the shape \(1, 1\); give a row of indices"),
        (([0, 1], [0]), "1 directed relations for 2 texts; give one for each"),
        (([0, 1], [0, 1], [5]), "1 exclude for 2 texts"),
        (([0, 1], [0, 1], None, [5]), "1 exclude_relation for 2 texts"),
        (([0, 1], [0, 1], None, None, [True]), "1 drop_neighbours for 2 texts"),
    ],
)
def test_indices_are_looked_at_before_compiled_code_trusts_them(given, told):
    texts = Texts(worded_graph(), tokenizer_named(NAMES[0]))
    with pytest.raises(SatkgcError, match=told):
        texts.queries(*given)
    with pytest.raises(SatkgcError, match="there is no 99 among 10 directed relations"):
        texts.new_entities([("zeppelin", "a rigid airship")], directed=[99])
    assert len(texts.queries([], [])) == 0


@pytest.mark.parametrize("per_relation", [0, 2])
@pytest.mark.parametrize("queries", [True, False])
def test_an_outline_has_the_texts_of_the_rows_before_they_are_laid_out(per_relation, queries):
    kg, rng = worded_graph(), np.random.default_rng(3)
    config = TextConfig(max_tokens=40, neighbours=3, neighbours_per_relation=per_relation, neighbour_dropout=0.3)
    texts = Texts(kg, tokenizer_named(NAMES[0]), config)
    triples = kg.train[rng.integers(0, len(kg.train), 300)]
    triples = np.concatenate([triples, triples[:, [2, 1, 0]]])  # some exclude a neighbour, some nobody
    entities, relations, others = triples.T
    choices = {"exclude": others, "drop_neighbours": rng.random(len(triples)) < 0.3}
    if per_relation:
        choices["exclude_relation"] = relations
    directed = relations if queries else None
    expected = texts.queries(entities, relations, **choices) if queries else texts.entities(entities, **choices)
    outline = texts.outline(entities, directed, **choices)
    laid = outline.lay_out(np.arange(len(outline.lengths)))
    assert laid.lengths.tolist() == outline.lengths.tolist()
    whole = laid.select(outline.text_of)
    assert whole.ids.tolist() == expected.ids.tolist()
    assert whole.ptr.tolist() == expected.ptr.tolist()
    distinct = len(expected.unique()[0])  # two rows may say the same of different names, cut off or alike
    assert distinct <= len(outline.lengths) <= distinct + 4 < 0.9 * len(entities)
    few = outline.lay_out(np.array([5, 2]))
    assert few.ids.tolist() == laid.select([5, 2]).ids.tolist()


def test_kept_tokens_are_mapped_and_equal_those_that_were_made(tmp_path):
    kg, tokenizer = worded_graph(), tokenizer_named(NAMES[0])
    for config in (TextConfig(max_tokens=40), TextConfig(max_tokens=40, neighbours=0)):
        fresh = Texts(kg, tokenizer, config)
        fresh.tokens.save(tmp_path / "tokens.safetensors")
        tokens = Tokens.open(tmp_path / "tokens.safetensors")
        owner = tokens.texts.ids
        while isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        assert isinstance(owner, mmap.mmap)
        kept = Texts(kg, tokenizer, config, tokens)
        entities = np.arange(NUM_ENTITIES)
        assert kept.entities(entities).ids.tolist() == fresh.entities(entities).ids.tolist()
    content = (tmp_path / "tokens.safetensors").read_bytes()
    (tmp_path / "tokens.safetensors").write_bytes(content[:-100])
    with pytest.raises(ValueError, match=r"tokens\.safetensors"):
        Tokens.open(tmp_path / "tokens.safetensors")
