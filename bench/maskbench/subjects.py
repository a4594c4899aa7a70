"""Other grammars than JSON Schemas, each over text that people or programs really write."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from bench.maskbench.jobs import Instance, Job, Kind
from bench.maskbench.schemas import ROOT
from bench.maskbench.token_list import TokenList
from bench.maskbench.vocabulary import TokenTable

TEXTS = Path(__file__).resolve().parent / "texts"

LOG_LINES = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z (DEBUG|INFO |WARN |ERROR) "
    r"\[[a-z]+(-[0-9]+)?\] ([0-9]{1,3}\.){3}[0-9]{1,3} (GET|HEAD|POST|PUT|DELETE) /[!-~]* [1-5][0-9]{2} [0-9]+ "
    r'"[^"\n]{1,120}"\n)+'
)
"""Lines of a server's log."""

SHORT_LINES = r"([^\n]{0,120}\n)+"
"""Any text, in lines of 120 characters at most."""


def subject_jobs(table: TokenTable | TokenList) -> list[Job]:
    """A job for each subject; every text belongs to its grammar."""

    def job(name: str, kind: Kind, grammar: str, texts: list[str]) -> Job:
        return Job(name, kind, grammar, [Instance(table.encode(text), True) for text in texts])

    def lark(name: str, file: str, split: Callable[[str], list[str]]) -> Job:
        text = (TEXTS / file).read_text(encoding="utf-8")
        return job(name, Kind.LARK, (ROOT / "grammars" / name).read_text(encoding="utf-8"), split(text))

    # A module of the standard library, pure prose and code in long and short lines.
    module = Path(textwrap.__file__).read_text(encoding="utf-8")
    log = (TEXTS / "access.log").read_text(encoding="utf-8")
    return [
        lark("c.lark", "queue.c", lambda text: [text]),
        lark("sql.lark", "library.sql", lambda text: [text]),
        lark("arithmetic.lark", "formulas.txt", str.splitlines),
        job("regex: log lines", Kind.REGEX, LOG_LINES, [log]),
        job("regex: short lines", Kind.REGEX, SHORT_LINES, [module]),
    ]
