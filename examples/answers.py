"""Put a file of questions to a run and print the answers as Markdown: how docs/answers.md was made.

python examples/answers.py runs/demo examples/questions/wordnet-sample.jsonl --k 3
"""

from __future__ import annotations

import argparse
from pathlib import Path

import satkgc
from satkgc.completion import NewEntity, Question, answer_file
from satkgc.errors import SatkgcError


def main() -> None:
    """One small table a question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--k", type=int, default=3)
    options = parser.parse_args()
    completer = satkgc.Completer.load(options.run)
    for number, (question, answers) in enumerate(answer_file(completer, options.questions, k=options.k), 1):
        if isinstance(answers, SatkgcError):
            raise answers
        print(f"{number}. **{asked(completer, question)}**\n")
        print("   | answer | | probability | in the graph |\n   |---|---|---:|---|")
        for answer in answers:
            chance = "" if answer.probability is None else f"{answer.probability:.0%}"
            print(f"   | {answer.name} | {short(answer.description)} | {chance} | {'yes' if answer.known else ''} |")
        print()


def asked(completer: satkgc.Completer, question: Question) -> str:
    """(violin, hypernym, ?)"""
    parts = []
    for part in (question.head, question.relation, question.tail):
        if isinstance(part, NewEntity):
            parts.append(f"*new:* {part.name}, “{part.description}”")
        elif part is None:
            parts.append("?")
        else:
            entity = completer.kg.entities.find(part)
            parts.append(part if entity is None else completer.kg.entities.name(entity))
    return f"({'; '.join(parts)})"


def short(text: str, limit: int = 60) -> str:
    """The beginning of a description, in a form that fits a table."""
    text = text.replace("|", "/")
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0] + " …"


if __name__ == "__main__":
    main()
