"""Pairs of entities that are the same thing: candidates from blocks, a score of names, vectors and shared neighbours, a
table to review, and the merge of what was accepted."""

from satkgc.completion.duplicates.accept import accept_duplicates, accepted_pairs, is_duplicates_file, merge_duplicates
from satkgc.completion.duplicates.find import Duplicate, find_duplicates
from satkgc.completion.duplicates.table import check_duplicates_file, check_limits, write_duplicates

__all__ = [
    "Duplicate",
    "accept_duplicates",
    "accepted_pairs",
    "check_duplicates_file",
    "check_limits",
    "find_duplicates",
    "is_duplicates_file",
    "merge_duplicates",
    "write_duplicates",
]
