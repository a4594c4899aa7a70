"""Kind "lark": random grammars in Lark's notation, by a plain Earley recogniser over characters."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import constrain
from bench.fuzz import patterns, protocol, seams, vocabularies
from bench.fuzz.byte_judge import ByteJudge, walk
from bench.fuzz.earley import EarleyJudge, RuleMaker
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, smallest

_ALPHABET = b'abcd01 ,;=()+"\\'


@dataclass(frozen=True)
class Text:
    """A random grammar: rules and terminals by name, as trees; what is ignored between terminals."""

    rules: tuple[tuple[str, patterns.Tree], ...]
    terminals: tuple[tuple[str, patterns.Tree], ...]
    ignored: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{name}: {_right(tree)}" for name, tree in self.rules]
        lines += [f"{name}: {_terminal(tree)}" for name, tree in self.terminals]
        return "\n".join([*lines, *(f"%ignore {name}" for name in self.ignored)])

    def judge(self) -> EarleyJudge:
        """Where something is ignored, it may stand at the start and behind each terminal."""
        maker = RuleMaker()
        names: dict[str, Any] = {name: maker.name() for name, _ in self.rules}
        alone = {name: maker.symbol(tree, maker.leaf) for name, tree in self.terminals}
        ignored = maker.name()
        maker.rules.append((ignored, ()))
        maker.rules += [(ignored, (ignored, alone[name])) for name in self.ignored]
        for name, _ in self.terminals:
            names[name] = maker.name()
            maker.rules.append((names[name], (alone[name], ignored)))
        for name, tree in self.rules:
            maker.rules.append((names[name], (maker.symbol(tree, names.__getitem__),)))
        start = maker.name()
        maker.rules.append((start, (ignored, names["start"])))
        return EarleyJudge(maker.rules, start)


def _right(tree: patterns.Tree) -> str:
    kind = tree[0]
    if kind == "leaf":
        return str(tree[1])
    if kind == "cat":
        return " ".join(f"({_right(part)})" if part[0] == "alt" else _right(part) for part in tree[1])
    if kind == "alt":
        return " | ".join(_right(part) for part in tree[1])
    _, item, low, high = tree
    inside = _right(item) if item[0] == "leaf" else f"({_right(item)})"
    if (low, high) == (0, 1) and item[0] != "leaf":
        return f"[{_right(item)}]"
    return inside + ({(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high)) or f"~{low}..{high}")


def _terminal(tree: patterns.Tree) -> str:
    if tree[0] == "leaf" and len(tree[1]) == 1 and tree[1] != '"':
        return f'"{tree[1]}"'
    return f"/{patterns.text(tree)}/"


def _is_nullable(tree: patterns.Tree) -> bool:
    kind = tree[0]
    if kind == "leaf":
        return False
    if kind == "rep":
        return tree[2] == 0 or _is_nullable(tree[1])
    return (all if kind == "cat" else any)(_is_nullable(part) for part in tree[1])


def _random_right(rng: random.Random, names: list[str], depth: int) -> patterns.Tree:
    what = rng.random()
    if depth == 0 or what < 0.35:
        return ("leaf", rng.choice(names))
    if what < 0.65:
        return ("cat", tuple(_random_right(rng, names, depth - 1) for _ in range(rng.randint(2, 4))))
    if what < 0.85:
        return ("alt", tuple(_random_right(rng, names, depth - 1) for _ in range(rng.randint(2, 3))))
    low, high = rng.choice(((0, None), (1, None), (0, 1), (0, 1), (1, 3), (2, 2)))
    return ("rep", _random_right(rng, names, depth - 1), low, high)


def random_text(rng: random.Random) -> Text:
    """A random grammar; recursion of every kind comes by itself."""
    terminals: list[tuple[str, patterns.Tree]] = []
    wanted = rng.randint(2, 5)
    while len(terminals) < wanted:
        tree = patterns.ascii_tree(rng, rng.choice((0, 0, 1, 2, 3)))
        if not _is_nullable(tree):
            terminals.append((f"T{len(terminals)}", tree))
    ignored = []
    if rng.random() < 0.4:
        terminals.append(("WS", ("rep", ("leaf", " "), 1, None)))
        ignored = ["WS"]
        if rng.random() < 0.2:
            ignored.append("T0")
    rules = ["start", *(f"r{index}" for index in range(rng.randint(0, 3)))]
    names = [name for name, _ in terminals if name != "WS"] * 2 + rules
    return Text(
        tuple((name, _random_right(rng, names, rng.randint(1, 3))) for name in rules), tuple(terminals), tuple(ignored)
    )


def _simpler(text: Text) -> list[Text]:
    found = [replace(text, ignored=())] if text.ignored else []
    for part in ("rules", "terminals"):
        pairs = getattr(text, part)
        for i, (name, tree) in enumerate(pairs):
            found += [
                replace(text, **{part: (*pairs[:i], (name, less), *pairs[i + 1 :])})
                for less in _less(tree)
                if part == "rules" or not _is_nullable(less)
            ]
    return found


def _less(tree: patterns.Tree) -> list[patterns.Tree]:
    kind = tree[0]
    if kind == "leaf":
        return []
    if kind == "rep":
        return [tree[1], *(("rep", item, *tree[2:]) for item in _less(tree[1]))]
    parts = tree[1]
    found = [*parts, *((kind, parts[:i] + parts[i + 1 :]) for i in range(len(parts)) if len(parts) > 1)]
    for i, part in enumerate(parts):
        found += [(kind, (*parts[:i], each, *parts[i + 1 :])) for each in _less(part)]
    return found


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    text = random_text(rng)
    vocabulary = vocabularies.random_vocabulary(rng, _ALPHABET, 80)
    choices = [rng.random() for _ in range(rng.choice((4, 8, 14)))]
    by_core = rng.random() < 0.7

    def check(text: Text, choices: list[float], counts: Counts) -> str:
        judge = text.judge()
        is_empty = judge.start() is None
        try:
            compiled = constrain.CompiledGrammar(constrain.Grammar.from_lark(str(text)).ir, vocabulary)
        except constrain.LimitError:
            counts["refused by a limit"] += 1
            return ""
        except constrain.ConstrainError as error:
            if is_empty:
                counts["refused"] += 1
                return ""
            return f"refused: {error}"
        if is_empty:
            return "it compiles, and matches no text"
        counts["grammars"] += 1
        if by_core:
            seams.make_masks_by_core(compiled)
        return walk(constrain.Matcher(compiled), ByteJudge(judge), choices, counts)

    wrong = isolated(lambda: check(text, choices, counts))
    if wrong:
        choices, wrong = smallest(choices, lambda fewer: isolated(lambda: check(text, fewer, Counts())), wrong)
        tries = 300 if protocol.is_careful else 0
        todo = _simpler(text)
        while todo and tries > 0:
            tries -= 1
            less = todo.pop(0)
            what = isolated(lambda less=less: check(less, choices, Counts()))  # type: ignore[misc]
            if what:
                text, wrong, todo = less, what, _simpler(less)
        raise Difference(
            wrong,
            f"grammar = '''\n{text}\n'''\nchoices = {choices}\nby core: {by_core}\ntokens = {vocabulary.tokens!r}",
        )
    return counts


KIND = Kind(
    "lark",
    "masks token by token by an Earley recogniser over characters",
    run,
    80,
    {"masks": 400, "tokens judged": 20_000},
)
