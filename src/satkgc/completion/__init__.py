"""Questions to a trained model: index, calibration, evidence → answers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from satkgc.completion.answer import (
    AmbiguousNameError,
    Answer,
    Doubt,
    DoubtfulEnd,
    Entity,
    EntityDetail,
    EntityType,
    Evidence,
    ExpertShare,
    Neighbour,
    NewEntity,
    Objection,
    Objections,
    Question,
    Relation,
    RelationShare,
    Role,
    TriplePart,
    UnknownNameError,
    UnknownTypeError,
)
from satkgc.completion.info import CandidateRecall, CompleterInfo, ModelInfo, Quality, RunVersion

if TYPE_CHECKING:
    from satkgc.completion.bolt_update import bolt_merges, send_to_bolt
    from satkgc.completion.checking import check_count, check_doubts_file
    from satkgc.completion.classification import Classification, RelationClassification
    from satkgc.completion.completer import Completer
    from satkgc.completion.duplicates import (
        Duplicate,
        accept_duplicates,
        check_duplicates_file,
        is_duplicates_file,
        merge_duplicates,
    )
    from satkgc.completion.endpoint_update import ACCEPTED, accepted_updates, send_accepted
    from satkgc.completion.index import INDEXES, Index
    from satkgc.completion.prepare import is_prepared
    from satkgc.completion.proposals import check_proposals_file
    from satkgc.completion.question_files import answer_file, answer_to_dict, count_questions, outcome_to_json
    from satkgc.completion.review import accept_into, accept_proposals, read_proposals
    from satkgc.completion.update import RunUpdate, update_run
    from satkgc.completion.verify import verify_folder

__all__ = [
    "ACCEPTED",
    "INDEXES",
    "AmbiguousNameError",
    "Answer",
    "CandidateRecall",
    "Classification",
    "Completer",
    "CompleterInfo",
    "Doubt",
    "DoubtfulEnd",
    "Duplicate",
    "Entity",
    "EntityDetail",
    "EntityType",
    "Evidence",
    "ExpertShare",
    "Index",
    "ModelInfo",
    "Neighbour",
    "NewEntity",
    "Objection",
    "Objections",
    "Quality",
    "Question",
    "Relation",
    "RelationClassification",
    "RelationShare",
    "Role",
    "RunUpdate",
    "RunVersion",
    "TriplePart",
    "UnknownNameError",
    "UnknownTypeError",
    "accept_duplicates",
    "accept_into",
    "accept_proposals",
    "accepted_updates",
    "answer_file",
    "answer_to_dict",
    "bolt_merges",
    "check_count",
    "check_doubts_file",
    "check_duplicates_file",
    "check_proposals_file",
    "count_questions",
    "is_duplicates_file",
    "is_prepared",
    "merge_duplicates",
    "outcome_to_json",
    "read_proposals",
    "send_accepted",
    "send_to_bolt",
    "update_run",
    "verify_folder",
]

# Imported when they are first used: torch, which most of them bring along, takes seconds.
_LAZY = {
    "ACCEPTED": "endpoint_update",
    "Classification": "classification",
    "Completer": "completer",
    "Duplicate": "duplicates",
    "INDEXES": "index",
    "Index": "index",
    "RelationClassification": "classification",
    "RunUpdate": "update",
    "accept_duplicates": "duplicates",
    "accept_into": "review",
    "accept_proposals": "review",
    "accepted_updates": "endpoint_update",
    "answer_file": "question_files",
    "answer_to_dict": "question_files",
    "bolt_merges": "bolt_update",
    "check_count": "checking",
    "check_doubts_file": "checking",
    "check_duplicates_file": "duplicates",
    "check_proposals_file": "proposals",
    "count_questions": "question_files",
    "is_duplicates_file": "duplicates",
    "is_prepared": "prepare",
    "merge_duplicates": "duplicates",
    "outcome_to_json": "question_files",
    "read_proposals": "review",
    "send_accepted": "endpoint_update",
    "send_to_bolt": "bolt_update",
    "update_run": "update",
    "verify_folder": "verify",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
