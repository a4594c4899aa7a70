"""The grammar as a drafter: how many tokens of tool calls are forced, and whether they are the tokenizer's own.

The arguments of MaskBench's tool calls (Glaive and BFCL), written compactly, in Llama-3's tokens.  A model that says
each text token by token is asked only where nothing is forced.  A forced token that is not the next one of the text is
wrong.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from collections import Counter
from typing import Any

import click

from bench.maskbench.schemas import SCHEMAS, VOCABULARY, data_folder
from constrain import Grammar, GrammarCompiler, Matcher, Vocabulary, load_tokenizer
from constrain.errors import ConstrainError

_SPLITS = ("Glaiveai2K", "BFCL")
_LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "compact": ({"whitespace": "compact", "separators": (",", ":")}, {"separators": (",", ":")}),
    "compact, one blank": ({"whitespace": "compact", "separators": (", ", ": ")}, {}),
}


@click.command()
@click.option("--count", type=int, default=0, help="Schemas; 0: all.")
@click.option("--prompt", default="", help="Text before each call.")
@click.option("--show", type=int, default=3, show_default=True, help="Wrong drafts to print.")
def main(count: int, prompt: str, show: int) -> None:
    """Count forced tokens in tool calls."""
    tokenizer = load_tokenizer(data_folder() / VOCABULARY)
    compiler = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
    with gzip.open(data_folder() / SCHEMAS, "rb") as file:
        entries = [json.loads(line.decode(errors="surrogatepass")) for line in file]
    entries = [entry for entry in entries if entry["split"] in _SPLITS][: count or None]
    before = tokenizer.encode(prompt).ids if prompt else []
    for name, (layout, written) in _LAYOUTS.items():
        total: Counter[str] = Counter()
        seconds = 0.0
        for entry in entries:
            with contextlib.suppress(ConstrainError, UnicodeEncodeError):
                grammar = Grammar.from_json_schema(entry["schema"], spelling="canonical", **layout)
                compiled = compiler.compile(grammar)
                for test in entry["tests"]:
                    text = json.dumps(test["data"], ensure_ascii=False, **written)
                    ids = tokenizer.encode(prompt + text).ids
                    if not test["valid"] or ids[: len(before)] != before:
                        continue
                    matcher = Matcher(compiled)
                    if matcher.validate_tokens(ids[len(before) :]) < len(ids) - len(before):
                        # Members in another order than the schema's, mostly.
                        total["texts left out"] += 1
                        continue
                    total["texts"] += 1
                    total["tokens"] += len(ids) - len(before)
                    place = len(before)
                    while place < len(ids):
                        start = time.perf_counter()
                        draft = matcher.forced_tokens(ids[:place])
                        seconds += time.perf_counter() - start
                        total["calls"] += 1
                        right = 0
                        while right < len(draft) and ids[place + right : place + right + 1] == [draft[right]]:
                            right += 1
                        total["forced"] += right
                        if right < len(draft):
                            total["wrong"] += 1
                            if total["wrong"] <= show:
                                wrong = b"".join(tokenizer.token_bytes(token) or b"" for token in draft)
                                click.echo(f"    {wrong!r} before {tokenizer.decode(ids[place : place + 6])!r}")
                        step = draft[:right] or ids[place : place + 1]
                        if right < len(draft):
                            step = ids[place : place + right + 1]
                        assert matcher.accept_tokens(step)
                        place += len(step)
        share = 100 * total["forced"] / max(1, total["tokens"])
        click.echo(
            f"{name:20s} {total['texts']:5d} texts ({total['texts left out']} left out) {total['tokens']:7d} tokens: "
            f"{share:.1f} % forced, {total['wrong']} drafts wrong; "
            f"{1e6 * seconds / max(1, total['calls']):.0f} us a call"
        )


if __name__ == "__main__":
    main()
