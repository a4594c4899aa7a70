"""Agreement with the test suites of other engines.

    python -m bench.peer_cases [--data FOLDER] [--suite NAME ...] [--left] [--json FILE]

The cases are data that is not part of the repository: a grammar, schema, regex or structural tag, and texts that a
peer's own tests accept or reject.  Each text goes byte by byte through a matcher with a vocabulary of 256 bytes; at
each step the mask must say the same as ``accept_token``.  A case agrees if every text has the same verdict, or if both
refuse the source; where it differs, a person may have judged why (``verdicts.jsonl``).  The table has a line for each
suite; ``--left`` lists every case that does not agree, with the reason.

Where a peer's convention differs from ours there is an option for it, and the case is run with it too (CONVENTIONS).
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import constrain
from bench.figures import data_folder
from constrain.grammar.json_schema.document.closed import closed
from constrain.grammar.structural_tags.styles import STYLES

Case = dict[str, Any]

FIELDS = ("accept", "reject", "incomplete", "dead", "prefix")
MOST_REASONS = 40
SECONDS = 30
"""After so long a case counts as one that hangs."""


def structural_tag(source: Any, options: dict[str, Any]) -> constrain.Grammar:
    return constrain.Grammar.from_structural_tag(source, **options)


def grammar_in_ebnf(source: Any, options: dict[str, Any]) -> constrain.Grammar:
    """XGrammar's EBNF where it has a front-end of its own, else GBNF."""
    read = getattr(constrain.Grammar, "from_ebnf", None)
    try:
        return constrain.Grammar.from_gbnf(source, **options)
    except constrain.ConstrainError:
        if read is None:
            raise
        grammar: constrain.Grammar = read(source, **options)
        return grammar


FRONT_ENDS: dict[str, Callable[[Any, dict[str, Any]], constrain.Grammar]] = {
    "json_schema": lambda source, options: constrain.Grammar.from_json_schema(source, **options),
    "regex": lambda source, options: constrain.Grammar.from_regex(source, **options),
    "lark": lambda source, options: constrain.Grammar.from_lark(source, **options),
    "gbnf": grammar_in_ebnf,
    "choices": lambda source, options: constrain.Grammar.from_choices(source, **options),
    "structural_tag": structural_tag,
}
"""How the source of each kind of case becomes a grammar.  A front-end for another kind has its line here."""

CONVENTIONS: tuple[tuple[str, Callable[[Any], Any], dict[str, Any]], ...] = (
    ("any order of keys", lambda schema: schema, {"property_order": "any"}),
    ("formats not enforced", lambda schema: schema, {"formats": "annotate"}),
    ("no white space", lambda schema: schema, {"whitespace": "compact"}),
    ("any white space", lambda schema: schema, {"max_whitespace": 100_000}),
    ("any order, formats not enforced", lambda schema: schema, {"property_order": "any", "formats": "annotate"}),
    ("lenient", lambda schema: schema, {"lenient": True}),
    ("objects closed", closed, {}),
)
"""Conventions of peers for JSON Schema: what is done to a schema, and options."""


# -- one case --------------------------------------------------------------------------------------


def data_of(text: Any) -> bytes:
    """The bytes of a text of a case."""
    return bytes.fromhex(text["hex"]) if isinstance(text, dict) else text.encode("utf-8", "surrogatepass")


class Judge:
    """Runs cases, one after the other."""

    def __init__(self) -> None:
        self._vocabulary = constrain.Vocabulary([*(bytes((byte,)) for byte in range(256)), b"</s>"], eos_ids=[256])
        self._mask = constrain.allocate_token_bitmask(1, 257)

    def _allows(self, token: int) -> bool:
        return bool(int(self._mask[0, token // 32]) >> token % 32 & 1)

    def walk(self, compiled: constrain.CompiledGrammar, data: bytes) -> tuple[int, bool]:
        """How many bytes are taken, and whether the text may end there."""
        matcher = constrain.Matcher(compiled)
        for place, byte in enumerate(data):
            matcher.fill_next_token_bitmask(self._mask)
            assert self._mask.any(), f"nothing is allowed after {data[:place]!r}"
            allowed, taken = self._allows(byte), matcher.accept_token(byte)
            assert allowed == taken, f"mask and accept_token differ after {data[:place]!r}"
            if not taken:
                return place, False
        matcher.fill_next_token_bitmask(self._mask)
        assert self._allows(256) == matcher.is_accepting(), f"mask and is_accepting differ after {data!r}"
        assert self._mask.any(), f"nothing is allowed after {data!r}"
        return len(data), matcher.is_accepting()

    def differences(self, case: Case, compiled: constrain.CompiledGrammar) -> list[str]:
        """What a case expects otherwise."""
        found = []
        for field in FIELDS:
            for text in case.get(field, ()):
                data = data_of(text)
                taken, ends = self.walk(compiled, data)
                alive = taken == len(data)
                expected = {
                    "accept": alive and ends,
                    "reject": not (alive and ends),
                    "incomplete": alive and not ends,
                    "dead": not alive,
                    "prefix": alive,
                }
                if not expected[field]:
                    state = "complete" if ends else "incomplete"
                    found.append(f"{field}: {text!r:.200}: {taken} of {len(data)} bytes, {state}")
        return found

    def compile(self, kind: str, source: Any, options: dict[str, Any]) -> constrain.CompiledGrammar:
        return constrain.CompiledGrammar(FRONT_ENDS[kind](source, options).ir, self._vocabulary)

    def run(self, case: Case) -> tuple[str, str]:
        """The status of a case, and what is to be said of it."""
        kind = case["kind"]
        if kind == "xml_tool_call":
            return self._run_xml(case)
        if kind not in FRONT_ENDS:
            return "no front-end", f"there is no front-end for {kind}"
        options = {
            name: tuple(value) if isinstance(value, list) else value for name, value in case.get("options", {}).items()
        }
        try:
            compiled = self.compile(kind, case["source"], options)
        except constrain.ConstrainError as error:
            message = f"{type(error).__name__}: {error}"
            is_empty = "matches no text" in message or "nothing is valid" in message
            wants_none = not any(case.get(field) for field in ("accept", "incomplete", "prefix"))
            expected = case.get("expect") == "error" or (is_empty and wants_none and any(map(case.get, FIELDS)))
            return ("agree" if expected else "refused"), message
        if case.get("expect") == "error":
            return "differs", "the peer refuses the source"
        found = self.differences(case, compiled)
        if not found:
            return "agree", ""
        if kind == "json_schema":
            name = self._convention(case, options)
            if name:
                return "agree", f"with a convention: {name}"
        return "differs", "; ".join(found)

    def _convention(self, case: Case, options: dict[str, Any]) -> str:
        for name, change, chosen in CONVENTIONS:
            if not options.keys().isdisjoint(chosen) or (change is closed and not case.get("strict")):
                continue
            source = case["source"]
            if change is closed:
                source = closed(json.loads(source) if isinstance(source, str) else source)
            try:
                if not self.differences(case, self.compile("json_schema", source, {**options, **chosen})):
                    return name
            except constrain.ConstrainError:
                pass
        return ""

    def _run_xml(self, case: Case) -> tuple[str, str]:
        """A case that does not say in which style its texts are: one style must accept each text, or none.

        Its lists come from tests of several styles, so a text that one of them accepts may be dead for the others.
        """
        source = case["source"]
        schema = json.loads(source) if isinstance(source, str) else source
        grammars, errors = [], []
        for style in STYLES:
            for any_order in (False, True):
                format = {"type": "json_schema", "json_schema": schema, "style": style, "any_order": any_order}
                try:
                    grammars.append((any_order, self.compile("structural_tag", format, {})))
                except constrain.ConstrainError as error:
                    errors.append(str(error))
        if not grammars:
            return ("agree" if case.get("expect") == "error" else "refused"), errors[0]
        if case.get("expect") == "error":
            return "differs", "the peer refuses the source"
        accepted = {data_of(text) for text in case.get("accept", ())}
        found = [
            f"accept: {data!r:.200}"
            for data in accepted
            if not any(self.walk(each, data) == (len(data), True) for _, each in grammars)
        ]
        for field in ("reject", "dead"):
            for text in case.get(field, ()):
                data = data_of(text)
                wrong = any(self.walk(each, data) == (len(data), True) for any_order, each in grammars if not any_order)
                if data not in accepted and wrong:
                    found.append(f"{field}: {text!r:.200}")
        return ("differs", "; ".join(found)) if found else ("agree", "")


# -- all cases -------------------------------------------------------------------------------------


def _work(connection: Connection) -> None:
    judge = Judge()
    while True:
        case = connection.recv()
        try:
            connection.send(judge.run(case))
        except Exception as error:
            connection.send(("fault", f"{type(error).__name__}: {error}"))


class Pool:
    """One process, started anew when a case takes too long or ends it."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None

    def run(self, case: Case) -> tuple[str, str]:
        """The result of a case."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._end, other = context.Pipe()
            self._process = context.Process(target=_work, args=(other,), daemon=True)
            self._process.start()
            other.close()
        self._end.send(case)
        if self._end.poll(SECONDS):
            try:
                result: tuple[str, str] = self._end.recv()
                return result
            except EOFError:
                pass
        self._process.kill()
        self._process = None
        return "fault", f"no result after {SECONDS} s"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()


def read_cases(folder: Path) -> Iterator[Case]:
    """All cases of the files in a folder."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)


def read_verdicts(folder: Path) -> dict[str, dict[str, str]]:
    """What was judged about cases, by their ids."""
    path = folder / "verdicts.jsonl"
    if not path.exists():
        return {}
    return {each["id"]: each for each in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder of the cases (default: peer-cases in the data folder)")
    parser.add_argument("--suite", action="append", help="only suites whose names begin like this")
    parser.add_argument("--kind", action="append", help="only cases of this kind")
    parser.add_argument("--left", action="store_true", help="list the cases that do not agree")
    parser.add_argument("--json", type=Path, help="write the results to this file, a line for each case")
    options = parser.parse_args()
    folder = options.data or data_folder() / "peer-cases"
    if not folder.is_dir():
        parser.error(f"there is no folder {folder}")
    verdicts = read_verdicts(folder)
    rows: dict[str, Counter[str]] = {}
    left: list[str] = []
    lines = []
    reasons: Counter[str] = Counter()
    begin = time.perf_counter()
    pool = Pool()
    for case in read_cases(folder):
        suite = case["suite"]
        if options.suite and not suite.startswith(tuple(options.suite)):
            continue
        if options.kind and case["kind"] not in options.kind:
            continue
        status, reason = pool.run(case)
        verdict = verdicts.get(case["id"])
        if status == "differs" and verdict is not None:
            status, reason = f"judged: {verdict['verdict']}", verdict["why"]
        row = rows.setdefault(f"{suite} ({case['kind']})", Counter())
        row["cases"] += 1
        row[status] += 1
        lines.append(json.dumps({"id": case["id"], "suite": suite, "status": status, "reason": reason}))
        if status != "agree":
            left.append(f"{case['id']} {suite}: {status}: {reason:.300}")
            peer = suite.partition("/")[0]
            reasons[f"{peer}: {status}: {'a text' if status == 'differs' else _kind_of_reason(reason)}"] += 1
    pool.close()
    if options.json is not None:
        options.json.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for line in left if options.left else ():
        print(line)
    _print_table(rows)
    _print_reasons(reasons)
    print(f"{time.perf_counter() - begin:.0f} s")


def _kind_of_reason(reason: str) -> str:
    """A reason without places and names, so that equal ones can be counted."""
    reason = re.sub(r"^\w+Error: |at #\S*: |line \d+, column \d+: ", "", reason)
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "...", reason)[:90]


def _print_reasons(reasons: Counter[str]) -> None:
    """The most frequent reasons for which cases do not agree."""
    print("\nwhat is left, by reason:")
    for reason, count in reasons.most_common(MOST_REASONS):
        print(f"{count:6} {reason}")
    rest = sum(reasons.values()) - sum(count for _, count in reasons.most_common(MOST_REASONS))
    if rest:
        print(f"{rest:6} others (--left lists all)")


def _print_table(rows: dict[str, Counter[str]]) -> None:
    """A line for each suite, and one for all."""
    total: Counter[str] = Counter()
    for row in rows.values():
        total.update(row)
    columns = ["cases", "agree", *sorted(total.keys() - {"cases", "agree"})]
    width = max(map(len, [*rows, "all"]))
    print("".ljust(width), *(column.rjust(max(6, len(column))) for column in columns), "  agreement")
    for name, row in [*sorted(rows.items()), ("all", total)]:
        good = row["agree"] + row["judged: peer"]
        cells = (str(row[column] or "").rjust(max(6, len(column))) for column in columns)
        print(name.ljust(width), *cells, f"  {100 * good / row['cases']:.1f} %")


if __name__ == "__main__":
    main()
