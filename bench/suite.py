"""The official JSON Schema Test Suite: how many of its cases are judged rightly, keyword by keyword.

A case counts as passed if the schema compiles, every key order of the instance is taken (``property_order="any"``), and
the verdict is right.  A schema that nothing satisfies is refused, which is right if none of its cases is valid.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from figures import data_folder

import constrain

DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft4": "http://json-schema.org/draft-04/schema#",
}

Verdict = Callable[[str], bool]
Counts = tuple[Counter[str], Counter[str]]
Judge = Callable[[Any, bool], Verdict]
"""Takes a schema and whether formats are enforced; gives what says whether a text is valid."""


def suite_files() -> dict[str, bytes]:
    """The files of the suite by their path."""
    path = data_folder() / "json-schema-test-suite" / "suite.tar.gz"
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile() and member.name.endswith(".json")]
        return {
            member.name.removeprefix("./"): io.BytesIO(file.read()).getvalue()
            for member in members
            if (file := archive.extractfile(member)) is not None
        }


def cases(files: dict[str, bytes], draft: str, optional: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """(keyword, group of cases) of a draft: the required files, and with ``optional`` those of ``optional/format``."""
    folder = f"tests/{draft}/"
    for name in sorted(files):
        if not name.startswith(folder):
            continue
        keyword = name.removeprefix(folder).removesuffix(".json")
        if "/" in keyword and not (optional and keyword.startswith("optional/")):
            continue
        for group in json.loads(files[name]):
            yield keyword, group


def registry(files: dict[str, bytes], draft: str) -> Any:
    """The suite's remote documents, and the metaschemas."""
    import referencing
    from jsonschema_specifications import REGISTRY
    from referencing.jsonschema import specification_with

    found = []
    for name, data in files.items():
        if name.startswith("remotes/"):
            contents = json.loads(data)
            declared = contents.get("$schema", DRAFTS[draft]) if isinstance(contents, dict) else DRAFTS[draft]
            specification = specification_with(declared, default=specification_with(DRAFTS[draft]))
            found.append(
                (
                    f"http://localhost:1234/{name.removeprefix('remotes/')}",
                    referencing.Resource(contents, specification),
                )
            )
    return REGISTRY.with_resources(found)


def ours(remotes: Any, draft: str) -> Judge:
    """This engine."""
    compiler = constrain.GrammarCompiler(constrain.Vocabulary([bytes([b]) for b in range(256)]), cache_limit_bytes=0)

    def judge(schema: Any, with_formats: bool) -> Verdict:
        if isinstance(schema, dict) and "$schema" not in schema:
            schema = {"$schema": DRAFTS[draft], **schema}
        grammar = constrain.Grammar.from_json_schema(
            json.dumps(schema),
            property_order="any",
            formats="assert" if with_formats else "annotate",
            registry=remotes,
        )
        compiled = compiler.compile(grammar)

        def verdict(text: str) -> bool:
            matcher = constrain.Matcher(compiled)
            return matcher.accept_bytes(text.encode()) and matcher.is_accepting()

        return verdict

    return judge


def llguidance(remotes: Any, draft: str) -> Judge:
    """llguidance, on its tokenizer of single bytes."""
    from llguidance import LLMatcher, LLTokenizer

    tokenizer = LLTokenizer("byte")

    def judge(schema: Any, with_formats: bool) -> Verdict:
        if isinstance(schema, dict) and "$schema" not in schema:
            schema = {"$schema": DRAFTS[draft], **schema}
        grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema))
        error = LLMatcher(tokenizer, grammar, log_level=0).get_error()
        if error:
            raise constrain.ConstrainError(error)

        def verdict(text: str) -> bool:
            matcher = LLMatcher(tokenizer, grammar, log_level=0)
            data = list(text.encode())
            return matcher.try_consume_tokens(data) == len(data) and bool(matcher.is_accepting())

        return verdict

    return judge


def xgrammar(remotes: Any, draft: str) -> Judge:
    """XGrammar, on a vocabulary of single bytes."""
    import xgrammar as package

    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = package.TokenizerInfo(tokens, package.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
    compiler = package.GrammarCompiler(info)

    def judge(schema: Any, with_formats: bool) -> Verdict:
        if isinstance(schema, dict) and "$schema" not in schema:
            schema = {"$schema": DRAFTS[draft], **schema}
        try:
            compiled = compiler.compile_json_schema(json.dumps(schema), strict_mode=False)
        except Exception as error:
            raise constrain.ConstrainError(str(error)) from error

        def verdict(text: str) -> bool:
            matcher = package.GrammarMatcher(compiled)
            return all(map(matcher.accept_token, text.encode())) and matcher.accept_token(256)

        return verdict

    return judge


ENGINES = {"constrain": ours, "llguidance": llguidance, "xgrammar": xgrammar}


def passed_by(judge: Judge, files: dict[str, bytes], draft: str, optional: bool, say: Callable[[str], None]) -> Counts:
    """How many cases of each keyword are judged rightly, and how many there are."""
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for keyword, group in cases(files, draft, optional):
        tests = group["tests"]
        total[keyword] += len(tests)
        place = f"{keyword}: {group['description']}"
        try:
            verdict = judge(group["schema"], keyword.startswith("optional/format/"))
        except constrain.ConstrainError as error:
            # A schema without any valid value has no grammar.
            if not any(test["valid"] for test in tests) and _is_unsatisfiable(str(error)):
                passed[keyword] += len(tests)
            else:
                say(f"{place}: {error}")
            continue
        for test in tests:
            try:
                right = verdict(json.dumps(test["data"], ensure_ascii=False)) == test["valid"]
            except UnicodeEncodeError:
                right = not test["valid"]
            except constrain.ConstrainError as error:
                right = False
                say(f"{place}: {error}")
            passed[keyword] += right
            if not right:
                say(f"{place}: {test['description']}: should be {test['valid']}: {json.dumps(test['data'])[:100]}")
    return passed, total


def _is_unsatisfiable(reason: str) -> bool:
    return "nothing is valid" in reason or "nsatisfiable" in reason


@click.command()
@click.option("--draft", type=click.Choice(list(DRAFTS)), default="draft2020-12", show_default=True)
@click.option("--engine", "engines", multiple=True, type=click.Choice(list(ENGINES)), default=["constrain"])
@click.option("--optional", is_flag=True, help="The optional tests too; those of formats with formats enforced.")
@click.option("--failures", is_flag=True, help="List what fails.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the table here, as Markdown.")
def main(draft: str, engines: tuple[str, ...], optional: bool, failures: bool, output: Path | None) -> None:
    """Passed and total of the official test suite, for each keyword."""
    files = suite_files()
    remotes = registry(files, draft)
    say = click.echo if failures else lambda line: None
    columns = []
    total: Counter[str] = Counter()
    for engine in engines:
        passed, total = passed_by(ENGINES[engine](remotes, draft), files, draft, optional, say)
        columns.append(passed)
    lines = [f"| tests of {draft} | of | {' | '.join(engines)} |", "|---" * (len(engines) + 2) + "|"]
    lines += [
        f"| {keyword} | {total[keyword]} | {' | '.join(str(passed[keyword]) for passed in columns)} |"
        for keyword in sorted(total)
    ]
    lines.append(f"| all | {total.total()} | {' | '.join(str(passed.total()) for passed in columns)} |")
    table = "\n".join(lines)
    click.echo(table)
    if output is not None:
        output.write_text(table + "\n")


if __name__ == "__main__":
    main()
