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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import constrain
from bench.figures import data_folder
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

_OF_SCHEMAS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("any order of keys", {"property_order": "any"}),
    ("formats not enforced", {"formats": "annotate"}),
    ("no white space", {"whitespace": "compact"}),
    ("any white space", {"max_whitespace": 100_000}),
    ("any order, formats not enforced", {"property_order": "any", "formats": "annotate"}),
    ("lenient", {"lenient": True}),
    ("plain numbers", {"numbers": "plain"}),
    ("one spelling", {"spelling": "canonical"}),
    ("objects closed", {"additional_properties": False}),
    ("objects closed, plain numbers", {"additional_properties": False, "numbers": "plain"}),
    ("objects closed, one spelling", {"additional_properties": False, "spelling": "canonical"}),
    ("objects closed, any order", {"additional_properties": False, "property_order": "any"}),
    ("patterns in full", {"patterns": "full"}),
    ("oneOf as anyOf", {"coerce_one_of": True}),
    ("white space around", {"surrounding_whitespace": True, "max_whitespace": 12}),
    ("fewer escapes", {"unicode_escapes": "controls"}),
    ("arrays of at most 8 items", {"max_array_length": 8, "max_whitespace": 12}),
)
_OF_LARK: tuple[tuple[str, dict[str, Any]], ...] = (
    ("case of ASCII alone", {"case": "ascii"}),
    ("nothing ignored before the first terminal", {"initial_ignore": False}),
    ("Lark's own lexer", {"lexing": "longest"}),
)
_OF_REGEXES: tuple[tuple[str, dict[str, Any]], ...] = (("ECMAScript's syntax", {"dialect": "ecma"}),)
CONVENTIONS = {"json_schema": _OF_SCHEMAS, "lark": _OF_LARK, "regex": _OF_REGEXES}
"""Conventions of peers, as options, for each kind of case."""

JUDGED = Path(__file__).parent / "data_lists" / "peer_verdicts.json"
"""More differences that were judged: for each reason the ids of cases, those that count as agreement and others."""

ASKED = {
    **dict.fromkeys(("llguidance", "xgrammar"), 97),
    **dict.fromkeys(("llamacpp", "outlines", "outlines-core", "lmfe", "lark"), 99),
}
"""Agreement that is asked for, in percent, by the first part of the names of suites."""

_NO_NAME = re.compile(r'the vocabulary has no token "([^"]+)"')
_NO_ID = re.compile(r"there is no token (\d+): the vocabulary has")
_MOST_TOKENS = 50_000

_LONGEST_PIECE = 12
"""Texts of grammars that limit tokens are cut into pieces of at most so many bytes."""

_MOST_CUTS = 4_000
"""So many pieces are tried for a text."""


# -- one case --------------------------------------------------------------------------------------


def data_of(text: Any) -> bytes:
    """The bytes of a text of a case."""
    return bytes.fromhex(text["hex"]) if isinstance(text, dict) else text.encode("utf-8", "surrogatepass")


class Judge:
    """Runs cases, one after the other."""

    def __init__(self) -> None:
        self._plain = vocabulary_with((), 257)
        self._may_grow = True
        self._use(self._plain, ())

    def _use(self, vocabulary: constrain.Vocabulary, names: tuple[str, ...]) -> None:
        self._vocabulary, self._names = vocabulary, names
        self._mask = constrain.allocate_token_bitmask(1, vocabulary.size)

    def _tokens_of(self, data: bytes) -> list[int]:
        """The tokens of a text: special tokens that the grammar names by their names, and bytes."""
        if not self._names:
            return list(data)
        ids = {name.encode(): 257 + index for index, name in enumerate(self._names)}
        parts = re.split(b"(" + b"|".join(map(re.escape, ids)) + b")", data)
        return [token for part in parts for token in ([ids[part]] if part in ids else part)]

    def _allows(self, token: int) -> bool:
        return bool(int(self._mask[0, token // 32]) >> token % 32 & 1)

    def walk(self, compiled: constrain.CompiledGrammar, data: bytes) -> tuple[int, bool]:
        """How many bytes are taken, and whether the text may end there."""
        matcher = constrain.Matcher(compiled)
        for place, token in enumerate(self._tokens_of(data)):
            matcher.fill_next_token_bitmask(self._mask)
            assert self._mask.any() or matcher.is_terminated(), f"nothing is allowed at {place} of {data!r}"
            allowed, taken = self._allows(token), matcher.accept_token(token)
            assert allowed == taken, f"mask and accept_token differ at {place} of {data!r}"
            if not taken:
                return min(place, len(data) - 1), False
        matcher.fill_next_token_bitmask(self._mask)
        assert self._allows(256) == matcher.is_accepting(), f"mask and is_accepting differ after {data!r}"
        assert self._mask.any(), f"nothing is allowed after {data!r}"
        return len(data), matcher.is_accepting()

    def walk_in_pieces(self, data: bytes, ends: bool) -> tuple[int, bool]:
        """The same for a grammar that limits tokens, where a case does not say what the tokens of its text are.

        It is walked in whatever pieces it can be taken in, the longest ones first.
        """
        names = sorted({name.encode() for name in self._names}, key=len, reverse=True)
        found = {data[i:j] for i in range(len(data)) for j in range(i + 2, min(len(data), i + _LONGEST_PIECE) + 1)}
        pieces = sorted(piece for piece in found if not any(name in piece for name in names))
        vocabulary = vocabulary_with(self._names, self._vocabulary.size, tuple(pieces))
        ids = {piece: self._vocabulary.size + index for index, piece in enumerate(pieces)}
        ids |= {bytes((byte,)): byte for byte in range(256)}
        ids |= {name.encode(): 257 + index for index, name in enumerate(self._names)}
        longest = max([_LONGEST_PIECE, *map(len, names)])
        matcher = constrain.Matcher(constrain.CompiledGrammar(self._ir, vocabulary))
        best, tried = (0, False), 0
        todo = [(0, matcher)]
        while todo and tried < _MOST_CUTS:
            place, matcher = todo.pop()
            accepts = matcher.is_accepting()
            best = max(best, (place, accepts))
            if place == len(data) and (accepts or not ends):
                return place, accepts
            for end in range(place + 1, min(len(data), place + longest) + 1):
                token = ids.get(data[place:end])
                tried += 1
                if token is not None and (ahead := matcher.fork()).accept_token(token):
                    todo.append((end, ahead))
        return best

    def differences(self, case: Case, compiled: constrain.CompiledGrammar) -> list[str]:
        """What a case expects otherwise."""
        found = []
        for field in FIELDS:
            for text in case.get(field, ()):
                data = data_of(text)
                taken, ends = self.walk(compiled, data)
                if compiled.ir.token_limits and field in ("accept", "prefix") and (taken < len(data) or not ends):
                    taken, ends = self.walk_in_pieces(data, field == "accept")
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
        """Compile a source for the vocabulary, with the tokens that it names and the vocabulary has not."""
        ir = self._ir = FRONT_ENDS[kind](source, options).ir
        while True:
            try:
                return constrain.CompiledGrammar(ir, self._vocabulary)
            except constrain.ConstrainError as error:
                if not self._may_grow:
                    raise
                name, number = _NO_NAME.search(str(error)), _NO_ID.search(str(error))
                names, size = self._names, self._vocabulary.size
                if name is not None:
                    names, size = (*names, name[1]), size + 1
                elif number is not None and int(number[1]) < _MOST_TOKENS:
                    size = _MOST_TOKENS
                else:
                    raise
                self._use(vocabulary_with(names, size), names)

    def run(self, case: Case) -> tuple[str, str]:
        """The status of a case, and what is to be said of it."""
        kind = case["kind"]
        self._use(self._plain, ())
        # A case that the peer refuses may be about a token that there is not.
        self._may_grow = case.get("expect") != "error"
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
            if kind == "regex" and case.get("expect") != "error" and (name := self._convention(case, options)):
                return "agree", f"with a convention: {name}"
            message = f"{type(error).__name__}: {error}"
            empty = ("matches no text", "nothing is valid", "there is no text it could stand for")
            is_empty = any(words in message for words in empty)
            wants_none = not any(case.get(field) for field in ("accept", "incomplete", "prefix"))
            expected = case.get("expect") == "error" or (is_empty and wants_none and any(map(case.get, FIELDS)))
            return ("agree" if expected else "refused"), message
        if case.get("expect") == "error":
            name = self._refusing(case, options)
            return ("agree", f"with a convention: {name}") if name else ("differs", "the peer refuses the source")
        found = self.differences(case, compiled)
        if not found:
            return "agree", ""
        name = self._convention(case, options)
        return ("agree", f"with a convention: {name}") if name else ("differs", "; ".join(found))

    def _refusing(self, case: Case, options: dict[str, Any]) -> str:
        """A convention of the peer with which its source is refused here too."""
        for name, chosen in _OF_LARK if case["suite"].startswith("lark/") else ():
            try:
                self.compile(case["kind"], case["source"], {**options, **chosen})
            except constrain.ConstrainError:
                return name
        return ""

    def _convention(self, case: Case, options: dict[str, Any]) -> str:
        kind = case["kind"]
        for name, chosen in CONVENTIONS.get(kind, ()):
            if not options.keys().isdisjoint(chosen):
                continue
            try:
                if not self.differences(case, self.compile(kind, case["source"], {**options, **chosen})):
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
    """What was judged about cases, by their ids: beside the cases, and here."""
    found: dict[str, dict[str, str]] = {}
    for verdict, reasons in json.loads(JUDGED.read_text(encoding="utf-8")).items():
        found |= {case: {"verdict": verdict, "why": why} for why, cases in reasons.items() for case in cases}
    path = folder / "verdicts.jsonl"
    if path.exists():
        found |= {each["id"]: each for each in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
    return found


def vocabulary_with(names: tuple[str, ...], size: int, pieces: tuple[bytes, ...] = ()) -> constrain.Vocabulary:
    """The 256 bytes, an end token, special tokens of these names, others without bytes, and then pieces of text."""
    tokens = [*(bytes((byte,)) for byte in range(256)), b"</s>", *(b"" for _ in range(size - 257)), *pieces]
    ids = range(257, size)
    named = {257 + index: name for index, name in enumerate(names)}
    others = {id: f"<unused {id}>" for id in ids if id not in named}
    return constrain.Vocabulary(tokens, eos_ids=[256], special_ids=list(ids), names={**named, **others})


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
        if status in ("differs", "refused") and verdict is not None:
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
    _print_peers(rows)
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


def _print_peers(rows: dict[str, Counter[str]]) -> None:
    """What is asked for and what there is, for each peer."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for suite, row in rows.items():
        sums[suite.partition("/")[0]].update(row)
    print("\npeer               cases   asked   agreement")
    for peer, row in sorted(sums.items()):
        good = 100 * (row["agree"] + row["judged: peer"]) / row["cases"]
        asked = f"{ASKED[peer]} %" if peer in ASKED else ""
        print(f"{peer.ljust(15)} {row['cases']:8} {asked:>7} {good:9.1f} %")


if __name__ == "__main__":
    main()
