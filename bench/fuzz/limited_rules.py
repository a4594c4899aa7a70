"""Kind "limited_rules": grammars with ``[max_tokens]`` and ``[min_tokens]`` on rules, by all derivations of each text.

The judge keeps every way to derive the text so far: a stack of what is still to come, with a mark for the end of each
limited rule that the text is in, and in that mark the token in which the rule began.  Behind a token two sets of ways
are left:

- those that keep all limits.  They must be allowed.
- those that keep the limits if each rule counts from the last place where any way of the text has it begin.  Nothing
  else may be allowed.

Where all ways are over, all go on.  A way on which a rule ends before its time, or on which what is left of it is too
short, is none at all.  Unless a rule may have begun at several places the sets are the same, and then the
mask is judged exactly; how often is counted.  Where only the second set is left, all may go on or not.
"""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import constrain
from bench.fuzz import protocol, seams
from bench.fuzz.byte_judge import mask_bits
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, smallest

_LETTERS = "abc<;"
_ANY = {"<[*]>": (1, None, 1), "<[*]>{0,1}": (0, None, 1), "<[*]>{0,2}": (0, None, 2)}
"""Single tokens of any text: how many letters they are, and how many tokens."""
_MOST_WAYS = 400
_LIMIT_BYTES = 1 << 26

Tree = tuple[Any, ...]
"""("leaf", name), ("set", letters), ("cat", parts), ("alt", parts) or ("rep", item, low, high or None)."""
Stack = tuple[Any, Any]
"""A tree or a mark, and the rest of the stack: () behind the last one."""


class TooManyWaysError(Exception):
    """A text has more derivations than are followed."""


@dataclass(frozen=True)
class Text:
    """A random grammar: rules with their limits, and terminals, which are trees too."""

    rules: tuple[tuple[str, Tree], ...]
    terminals: tuple[tuple[str, Tree], ...]
    limits: dict[str, int] = field(hash=False)
    notation: str = "lark"
    least: dict[str, int] = field(hash=False, default_factory=dict)
    """How many tokens rules take at least; these are made of terminals."""

    def __str__(self) -> str:
        is_lark = self.notation == "lark"
        lines = []
        for name, tree in self.rules:
            said = [f"max_tokens={self.limits[name]}"] if name in self.limits else []
            said += [f"min_tokens={self.least[name]}"] if name in self.least else []
            limit = f"[{', '.join(said)}]" if said else ""
            lines.append(f"{name}{limit}: {_lark(tree)}" if is_lark else f"{name}{limit} ::= {_ebnf(tree)}")
        for name, tree in self.terminals:
            lines.append(f"{name}: /{_regex(tree)}/" if is_lark else f"{name} ::= {_ebnf(tree)}")
        return "\n".join(lines)

    def grammar(self) -> constrain.Grammar:
        if self.notation == "lark":
            return constrain.Grammar.from_lark(str(self))
        return constrain.Grammar.from_ebnf(str(self), start="start")


def _bound(low: int, high: int | None) -> str:
    return {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high)) or f"{{{low},{'' if high is None else high}}}"


def _regex(tree: Tree) -> str:
    kind = tree[0]
    if kind == "set":
        return f"[{tree[1]}]"
    if kind == "rep":
        return f"({_regex(tree[1])}){_bound(*tree[2:])}"
    return "(" + ("" if kind == "cat" else "|").join(map(_regex, tree[1])) + ")"


def _lark(tree: Tree) -> str:
    kind = tree[0]
    if kind == "leaf":
        return str(tree[1])
    if kind == "rep":
        _, item, low, high = tree
        if high is None and low > 1:
            return f"({_lark(item)})~{low} ({_lark(item)})*"
        return f"({_lark(item)})" + (_bound(low, high) if high is None or high == 1 else f"~{low}..{high}")
    return "(" + (" " if kind == "cat" else " | ").join(map(_lark, tree[1])) + ")"


def _ebnf(tree: Tree) -> str:
    kind = tree[0]
    if kind == "leaf":
        return str(tree[1])
    if kind == "set":
        return f"[{tree[1]}]"
    if kind == "rep":
        return f"({_ebnf(tree[1])}){_bound(*tree[2:])}"
    return "(" + (" " if kind == "cat" else " | ").join(map(_ebnf, tree[1])) + ")"


# -- the judge ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """The ways to derive a text: those that keep the limits, and those that keep them from the last beginnings."""

    strict: frozenset[Stack]
    loose: frozenset[Stack]
    tokens: int


class WaysJudge:
    """Follows all derivations; no rule may be left-recursive.

    Parameters
    ----------
    text : Text
    is_limited : bool
        Else it judges by the plain grammar.
    """

    def __init__(self, text: Text, is_limited: bool = True) -> None:
        self._right = dict((*text.rules, *text.terminals))
        self._right |= {name: ("rep", ("set", _LETTERS), low, high) for name, (low, high, _) in _ANY.items()}
        if all(text.least.get(name, 0) < 2 for name in self.in_use()):
            # Without gates their byte is one like any other.
            self._right |= {name: ("rep", ("set", _LETTERS + "\xfe"), *bounds[:2]) for name, bounds in _ANY.items()}
        limits = text.limits | {name: tokens for name, (_, _, tokens) in _ANY.items()}
        self._limits = limits if is_limited else {}
        self._least = text.least
        self._opened: dict[tuple[Stack, int, int], frozenset[Stack]] = {}
        first = frozenset(self._open((("leaf", "start"), ()), -1))
        self.start = Place(first, first, 0)

    def too_short(self) -> set[str]:
        """The rules without a text of as many letters as they take tokens at least."""
        return {name for name, least in self._least.items() if self._longest(self._right[name]) < least}

    def in_use(self) -> set[str]:
        """The rules that the start leads to."""
        found, todo = {"start"}, [self._right["start"]]
        while todo:
            tree = todo.pop()
            if tree[0] == "leaf":
                if tree[1] not in found:
                    found.add(tree[1])
                    todo.append(self._right[tree[1]])
            elif tree[0] != "set":
                todo += [tree[1]] if tree[0] == "rep" else tree[1]
        return found

    def _longest(self, tree: Tree) -> float:
        """The letters of the longest text."""
        kind = tree[0]
        if kind == "end":
            return 0
        if kind == "leaf":
            return self._longest(self._right[tree[1]])
        if kind == "set":
            return 1
        if kind == "rep":
            length = self._longest(tree[1])
            return length * (math.inf if tree[3] is None else tree[3]) if length and tree[3] != 0 else 0
        return (sum if kind == "cat" else max)(map(self._longest, tree[1]))

    def _may_go_on(self, stack: Stack, now: int) -> bool:
        """Whether each rule that a way is in has enough left behind a token."""
        inside: list[Tree] = []
        while stack:
            top, stack = stack
            if top[0] == "end" and top[1] in self._least:
                # All before it is in the rule, which is made of terminals.
                taken = 0 if top[2] is None else now + 1 - top[2]
                return sum(map(self._longest, inside)) >= self._least[top[1]] - taken
            inside.append(top)
        return True

    def _open(self, stack: Stack, now: int, once: int = -1) -> frozenset[Stack]:
        """The stacks with a letter on top, or nothing, that a stack comes to without a letter.

        A rule that has begun in token ``once`` counts one token.
        """
        if (stack, now, once) not in self._opened:
            found = set()
            seen = {stack}
            todo = [stack]
            while todo:
                here = todo.pop()
                if not here or here[0][0] == "set":
                    found.add(here)
                    continue
                for then in self._alternatives(*here, now, once):
                    if then not in seen:
                        seen.add(then)
                        todo.append(then)
                if len(seen) > _MOST_WAYS:
                    raise TooManyWaysError
            self._opened[stack, now, once] = frozenset(found)
        return self._opened[stack, now, once]

    def _alternatives(self, top: Any, rest: Any, now: int, once: int) -> Iterator[Any]:
        kind = top[0]
        if kind == "end":
            taken = 0 if top[2] is None else 1 if top[2] == once else now + 1 - top[2]
            if taken >= self._least.get(top[1], 0):
                yield rest
        elif kind == "leaf":
            name = top[1]
            if name in self._least and name not in self._limits:
                rest = (("end", name, None), rest)
            if name in self._limits:
                # With no tokens at all it is empty if it may be.
                if self._limits[name] == 0 and self._is_nullable(("leaf", name)):
                    yield rest
                    return
                rest = (("end", name, None), rest)
            yield self._right[name], rest
        elif kind == "cat":
            for part in reversed(top[1]):
                rest = part, rest
            yield rest
        elif kind == "alt":
            for part in top[1]:
                yield part, rest
        else:
            _, item, low, high = top
            if low == 0:
                yield rest
            if high != 0:
                yield item, (("rep", item, max(0, low - 1), None if high is None else high - 1), rest)

    def _is_nullable(self, tree: Tree) -> bool:
        kind = tree[0]
        if kind == "leaf":
            return tree[1] not in self._least and self._is_nullable(self._right[tree[1]])
        if kind == "set":
            return False
        if kind == "rep":
            return tree[2] == 0 or self._is_nullable(tree[1])
        return (all if kind == "cat" else any)(map(self._is_nullable, tree[1]))

    def take(self, place: Place, data: bytes, tokens: int = 1) -> Place | None:
        """The place behind some bytes, which count as so many tokens; None if no text goes on like that."""
        loose = self._read(place.loose, data.decode("latin-1"), place.tokens, tokens)
        if not loose:
            return None
        # Of a step of several tokens it is not known how many of them are in a rule that begins in it.
        strict = self._read(place.strict, data.decode("latin-1"), place.tokens, tokens, place.tokens)
        return self._close(strict, loose, place.tokens + tokens)

    def _read(
        self, ways: frozenset[Stack], letters: str, now: int, tokens: int = 1, once: int = -1
    ) -> frozenset[Stack]:
        for index, letter in enumerate(letters, 1):
            # Behind the last one all tokens count.
            behind = now + tokens - 1 if index == len(letters) else now
            found: set[Stack] = set()
            for stack in ways:
                if stack and letter in stack[0][1]:
                    found |= self._open(_begun(stack[1], now), behind, once)
            ways = frozenset(found)
            if len(ways) > _MOST_WAYS:
                raise TooManyWaysError
        if not self._least:
            return ways
        # What is read as one step goes like one token, and counts as all of them behind it.
        if not any(self._may_go_on(stack, now) for stack in ways):
            return frozenset()
        return frozenset(stack for stack in ways if self._may_go_on(stack, now + tokens - 1))

    def _close(self, strict: frozenset[Stack], loose: frozenset[Stack], now: int) -> Place:
        last: dict[str, int] = {}
        for stack in loose:
            for name, begin in _marks(stack, now):
                last[name] = max(begin, last.get(name, 0))

        def is_over(stack: Stack, from_last: bool) -> bool:
            return any(
                now - (last[name] if from_last else begin) >= max(1, self._limits[name])
                for name, begin in _marks(stack, now)
                if name in self._limits
            )

        left = frozenset(stack for stack in strict if not is_over(stack, False))
        left_loosely = frozenset(stack for stack in loose if not is_over(stack, True))
        if left:
            return Place(left, left_loosely, now)
        # Whether all go on is not known where only the last beginnings keep a limit.
        return Place(frozenset() if left_loosely else strict, loose, now)

    def accepts(self, place: Place) -> tuple[bool, bool]:
        """Whether the text must be allowed to end here, and whether it may."""
        return () in place.strict, () in place.loose

    def masks(self, place: Place, vocabulary: constrain.Vocabulary) -> tuple[Any, Any]:
        """Two bool[size]: what must be allowed, and what may."""
        must, may = np.zeros(vocabulary.size, bool), np.zeros(vocabulary.size, bool)
        for token, data in enumerate(vocabulary.tokens):
            if token in vocabulary.eos_ids:
                must[token], may[token] = self.accepts(place)
            else:
                letters = data.decode("latin-1")
                must[token] = bool(self._read(place.strict, letters, place.tokens))
                may[token] = bool(self._read(place.loose, letters, place.tokens))
        return must, may


def _begun(stack: Any, now: int) -> Any:
    """A stack of which a letter was read: the rules on it have begun."""
    above = []
    here = stack
    while here:
        top, here = here
        above.append(top)
    for top in reversed(above):
        here = (("end", top[1], now) if top[0] == "end" and top[2] is None else top), here
    return here


def _marks(stack: Any, now: int) -> Iterator[tuple[str, int]]:
    """The limited rules that a way is in, with the tokens in which they began; one without a letter begins now."""
    while stack:
        top, stack = stack
        if top[0] == "end":
            yield top[1], now if top[2] is None else top[2]


# -- cases -------------------------------------------------------------------------------------------------


def _terminal(rng: random.Random, depth: int) -> Tree:
    what = rng.random()
    if depth == 0 or what < 0.4:
        return "set", "".join(sorted(rng.sample(_LETTERS, rng.choice((1, 1, 2, 3, 5)))))
    if what < 0.6:
        return "cat", tuple(_terminal(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    if what < 0.7:
        return "alt", tuple(_terminal(rng, depth - 1) for _ in range(2))
    return "rep", _terminal(rng, depth - 1), *rng.choice(((0, None), (1, None), (1, None), (0, 1), (1, 3), (2, 2)))


def _right(rng: random.Random, names: list[str], depth: int) -> Tree:
    what = rng.random()
    if depth == 0 or what < 0.25:
        return "leaf", rng.choice(names)
    if what < 0.7:
        return "cat", tuple(_right(rng, names, depth - 1) for _ in range(rng.randint(2, 4)))
    if what < 0.8:
        return "alt", tuple(_right(rng, names, depth - 1) for _ in range(2))
    return "rep", _right(rng, names, depth - 1), *rng.choice(((0, None), (1, None), (0, 1), (1, 3), (2, 2)))


def random_text(rng: random.Random) -> Text:
    """A random grammar: a rule is made of later ones, and now and then of itself behind a terminal."""
    terminals = tuple((f"T{index}", _terminal(rng, 2)) for index in range(rng.randint(2, 4)))
    names = ["start", *(f"r{index}" for index in range(rng.randint(1, 4)))]
    limits = {name: rng.choice((0, 1, 1, 2, 2, 3, 4)) for name in names[1:] if rng.random() < 0.7}
    notation = rng.choice(("lark", "lark", "ebnf"))
    any_tokens = rng.sample(sorted(_ANY), 1) if notation == "lark" and rng.random() < 0.4 else []
    rules = []
    for index, name in enumerate(names):
        later = [*names[index + 1 :] * (3 if index == 0 else 1), *any_tokens]
        tree = _right(rng, [*(each for each, _ in terminals), *later], rng.randint(1, 2))
        if name not in limits and rng.random() < 0.2:
            inner = ("leaf", name) if rng.random() < 0.7 else ("cat", (("leaf", name), ("leaf", terminals[0][0])))
            tree = "alt", (tree, ("cat", (("set", ";"), inner)))
        rules.append((name, tree))
    if any(tree[0] == "alt" and tree[1][-1][:1] == ("cat",) and tree[1][-1][1][0][0] == "set" for _, tree in rules):
        terminals += (("END", ("set", ";")),)
        rules = [(name, _named(tree)) for name, tree in rules]
    alone = [name for name, tree in rules if name != "start" and _is_of_terminals(tree)]
    least = {name: rng.choice((1, 2, 2, 3, 4)) for name in alone if rng.random() < 0.5}
    limits = {name: max(most, least.get(name, 0)) for name, most in limits.items()}
    return Text(tuple(rules), terminals, limits, notation, least)


def _is_of_terminals(tree: Tree) -> bool:
    if tree[0] == "leaf":
        return tree[1][0] in "TE"
    return all(map(_is_of_terminals, [tree[1]] if tree[0] == "rep" else tree[1]))


def _named(tree: Tree) -> Tree:
    if tree[0] == "set":
        return "leaf", "END"
    if tree[0] == "leaf":
        return tree
    if tree[0] == "rep":
        return "rep", _named(tree[1]), *tree[2:]
    return tree[0], tuple(map(_named, tree[1]))


def random_vocabulary(rng: random.Random, has_gates: bool = False) -> constrain.Vocabulary:
    """Letters, and tokens of several; ``has_gates``: with the one that a budget asks for beside ``[min_tokens]``."""
    letters = [letter.encode() for letter in _LETTERS]
    longer = ["".join(rng.choices(_LETTERS, k=rng.choice((2, 2, 3, 4)))).encode() for _ in range(rng.randint(0, 12))]
    tokens = [
        *letters,
        *longer,
        *([b"\xfe"] if has_gates else []),
        b"</s>",
    ]
    return constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])


@dataclass
class _Player:
    """A matcher, and the places that it has been at."""

    matcher: constrain.Matcher
    places: list[Place]

    def fork(self) -> _Player:
        return _Player(self.matcher.fork(), list(self.places))


def _mask(matcher: constrain.Matcher) -> Any:
    size = matcher.compiled.vocabulary.size
    mask = constrain.allocate_token_bitmask(1, size)
    mask.fill(-1)
    matcher.fill_next_token_bitmask(mask)
    return mask_bits(mask, size)


def _look(player: _Player, judge: WaysJudge, counts: Counts) -> str:
    """Judge the mask of a matcher, also by what it takes."""
    vocabulary = player.matcher.compiled.vocabulary
    place = player.places[-1]
    must, may = judge.masks(place, vocabulary)
    found = _mask(player.matcher)
    counts["masks"] += 1
    counts["masks judged exactly"] += bool((must == may).all())
    wrong = [vocabulary.tokens[token] for token in np.flatnonzero((must & ~found) | (found & ~may))]
    if wrong:
        allowed = [vocabulary.tokens[token] for token in np.flatnonzero(found)]
        return f"the mask {allowed} is wrong in {wrong}"
    for token in range(vocabulary.size):
        if player.matcher.fork().accept_token(token) != found[token]:
            return f"the mask and accept_token differ in {vocabulary.tokens[token]!r}"
    if player.matcher.is_accepting() != bool(found[vocabulary.eos_ids[0]]):
        return "the mask and is_accepting() differ"
    return ""


def _draft(player: _Player, rng: random.Random) -> str:
    """A draft's masks, by a matcher that goes along."""
    vocabulary = player.matcher.compiled.vocabulary
    ahead = player.matcher.fork()
    draft, expected = [], [_mask(ahead)]
    for _ in range(rng.randint(1, 4)):
        token = int(rng.choice(np.flatnonzero(expected[-1]).tolist() or [0]))
        if rng.random() < 0.15:
            token = rng.randrange(vocabulary.size)
        draft.append(token)
        if token in vocabulary.eos_ids or not ahead.accept_token(token):
            break
        expected.append(_mask(ahead))
    mask = constrain.allocate_token_bitmask(len(draft) + 1, vocabulary.size)
    constrain.fill_draft_bitmasks([player.matcher], [draft], None, mask)
    for row, wanted in enumerate(expected):
        if not np.array_equal(mask_bits(mask[row : row + 1], vocabulary.size), wanted):
            return f"row {row} of the draft {[vocabulary.tokens[token] for token in draft]} is another mask"
    return ""


def _fewest(data: bytes, vocabulary: constrain.Vocabulary) -> int:
    """The fewest tokens that spell some bytes."""
    best = [0] + [len(data)] * len(data)
    for end in range(1, len(data) + 1):
        best[end] = min(
            best[end - len(token)] + 1 for token in vocabulary.tokens if token and data[:end].endswith(token)
        )
    return best[-1]


def _play(compiled: constrain.CompiledGrammar, judge: WaysJudge, moves: list[float], counts: Counts) -> str:
    """Move matchers about, and judge each mask; what is wrong, or an empty string."""
    vocabulary = compiled.vocabulary
    players = [_Player(constrain.Matcher(compiled), [judge.start])]
    said: list[str] = []
    for move in [0.0, *moves]:
        rng = random.Random(move)
        player = rng.choice(players)
        what = "look" if move == 0.0 else rng.choice(_MOVES)
        must, _ = judge.masks(player.places[-1], vocabulary)
        onward = [token for token in np.flatnonzero(must).tolist() if token not in vocabulary.eos_ids]
        if what in ("token", "both") and not onward:
            what = "rollback"
        if what == "token":
            token = rng.choice(onward)
            said.append(f"{players.index(player)}: {vocabulary.tokens[token]!r}")
            if not player.matcher.accept_token(token):
                return f"refused: {said}"
            behind = judge.take(player.places[-1], vocabulary.tokens[token])
            assert behind is not None
            player.places.append(behind)
        elif what == "bytes":
            data = b"".join(vocabulary.tokens[rng.choice(onward)] for _ in range(rng.randint(1, 2))) if onward else b""
            if not data:
                continue
            said.append(f"{players.index(player)}: accept_bytes({data!r})")
            behind = judge.take(player.places[-1], data, _fewest(data, vocabulary))
            taken = player.matcher.accept_bytes(data)
            if taken and behind is None:
                return f"taken, and should not be: {said}"
            if not taken and behind is not None and judge._read(player.places[-1].strict, data.decode("latin-1"), 0):
                return f"refused: {said}"
            if taken:
                player.places.append(behind)  # type: ignore[arg-type]
        elif what == "rollback":
            count = rng.randint(0, len(player.places) - 1)
            said.append(f"{players.index(player)}: rollback({count})")
            player.matcher.rollback(count)
            del player.places[len(player.places) - count :]
        elif what == "reset":
            said.append(f"{players.index(player)}: reset()")
            player.matcher.reset()
            del player.places[1:]
        elif what == "fork" and len(players) < 4:
            said.append(f"{len(players)} is a fork of {players.index(player)}")
            players.append(player.fork())
        elif what == "pickle":
            said.append(f"{players.index(player)}: pickled")
            player.matcher = pickle.loads(pickle.dumps(player.matcher))
        elif what == "forget":
            said.append("compaction" if move < 0.5 else "the tables begin anew")
            with compiled.lock:
                compiled.compact() if move < 0.5 else compiled.begin()
        elif what == "draft":
            if wrong := _draft(player, rng):
                return f"{wrong}: {said} ({players.index(player)})"
        elif what == "both":
            wrong = _batch(players, judge, rng, said)
            if wrong:
                return f"{wrong}: {said}"
        if wrong := _look(player, judge, counts):
            return f"{wrong}: {said} ({players.index(player)})"
    return ""


_MOVES = [
    *["token"] * 14,
    *["rollback"] * 2,
    *("fork", "bytes", "draft", "both", "both", "reset", "pickle", "forget"),
]


def _batch(players: list[_Player], judge: WaysJudge, rng: random.Random, said: list[str]) -> str:
    """Masks and tokens of all matchers in one call."""
    vocabulary = players[0].matcher.compiled.vocabulary
    matchers = [player.matcher for player in players]
    mask = constrain.allocate_token_bitmask(len(matchers), vocabulary.size)
    constrain.fill_next_token_bitmask_batch(matchers, mask)
    tokens = []
    for row, player in enumerate(players):
        found = mask_bits(mask[row : row + 1], vocabulary.size)
        if not np.array_equal(found, _mask(player.matcher)):
            return f"the mask of {row} is another one in a batch"
        must, _ = judge.masks(player.places[-1], vocabulary)
        onward = [token for token in np.flatnonzero(must).tolist() if token not in vocabulary.eos_ids]
        tokens.append(rng.choice(onward) if onward and rng.random() < 0.8 else rng.randrange(vocabulary.size - 1))
    said.append(f"accept_token_batch({[vocabulary.tokens[token] for token in tokens]})")
    expected = [mask_bits(mask[row : row + 1], vocabulary.size)[token] for row, token in enumerate(tokens)]
    taken = constrain.accept_token_batch(matchers, tokens)
    if list(map(bool, taken)) != list(map(bool, expected)):
        return f"accept_token_batch says {taken}"
    for player, token, is_taken in zip(players, tokens, taken, strict=True):
        if is_taken:
            behind = judge.take(player.places[-1], vocabulary.tokens[token])
            assert behind is not None
            player.places.append(behind)
    return ""


def _within_budget(
    compiled: constrain.CompiledGrammar, plain: WaysJudge, most: int, rng: random.Random, counts: Counts
) -> str:
    """A text of at most so many tokens: complete, in time, and one of the plain grammar's."""
    vocabulary = compiled.vocabulary
    try:
        matcher = constrain.Matcher(compiled, max_tokens=most)
    except constrain.ConstrainError:
        # A budget takes a rule with gates for some tokens longer than it has to be.
        counts["budgets that were too few"] += 1
        return "" if any(limit.least > 1 for limit in compiled.ir.token_limits) else f"max_tokens={most} is too few"
    place: Place | None = plain.start
    said: list[bytes] = []
    while True:
        assert place is not None
        found = _mask(matcher)
        at = f"max_tokens={most}, after {said}"
        counts["masks within budgets"] += 1
        if not found.any():
            return f"nothing is allowed, {at}"
        must, _ = plain.masks(place, vocabulary)
        if (found & ~must).any():
            return f"the mask allows what the grammar does not, {at}"
        if [matcher.fork().accept_token(token) for token in range(vocabulary.size)] != found.tolist():
            return f"the mask and accept_token differ, {at}"
        token = int(rng.choice(np.flatnonzero(found).tolist()))
        matcher.accept_token(token)
        if rng.random() < 0.1:
            matcher.rollback()
            if not np.array_equal(_mask(matcher), found):
                return f"a rollback leads to another mask, {at}"
            matcher.accept_token(token)
        if token in vocabulary.eos_ids:
            return ""
        said.append(vocabulary.tokens[token])
        if len(said) > most:
            return f"too many tokens, {at}"
        place = plain.take(place, said[-1])


def _check(text: Text, vocabulary: constrain.Vocabulary, moves: list[float], by_core: bool, counts: Counts) -> str:
    try:
        judge, plain = WaysJudge(text), WaysJudge(text, is_limited=False)
        if short := judge.too_short():
            counts["with a rule that is too short"] += 1
            try:
                text.grammar()
            except constrain.GrammarError:
                return ""
            # Lark does not look at a rule that is not used.
            return "not refused: a rule is too short for its tokens" if short & judge.in_use() else ""
        try:
            compiled = constrain.GrammarCompiler(vocabulary, limit_bytes=_LIMIT_BYTES).compile(text.grammar())
        except constrain.ConstrainError as error:
            return f"refused: {error}"
        counts["grammars"] += 1
        if by_core:
            seams.make_masks_by_core(compiled)
        if wrong := _play(compiled, judge, moves, counts):
            return wrong
        rng = random.Random(repr(moves))
        try:
            shortest = len(constrain.Matcher(compiled).completion())
        except constrain.LimitError:
            raise
        except constrain.ConstrainError:
            # A limited rule may need more tokens than it may have, whatever they are.
            counts["without a text within the limits"] += 1
            return None
        for more in (0, 1, rng.randint(2, 8), *([20] if text.least else [])):
            if wrong := _within_budget(compiled, plain, shortest + more, rng, counts):
                return wrong
    except TooManyWaysError:
        counts["left out: too many derivations"] += 1
    except constrain.LimitError:
        counts["refused by a limit"] += 1
    return ""


def _simpler(text: Text) -> Iterator[Text]:
    for name in text.limits:
        yield replace(text, limits={each: limit for each, limit in text.limits.items() if each != name})
    for name in text.least:
        yield replace(text, least={each: least for each, least in text.least.items() if each != name})
    for part in ("rules", "terminals"):
        pairs = getattr(text, part)
        for index, (name, tree) in enumerate(pairs):
            for less in _less(tree):
                yield replace(text, **{part: (*pairs[:index], (name, less), *pairs[index + 1 :])})


def _less(tree: Tree) -> list[Tree]:
    kind = tree[0]
    if kind == "leaf":
        return []
    if kind == "set":
        return [("set", letter) for letter in tree[1]] if len(tree[1]) > 1 else []
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
    vocabulary = random_vocabulary(rng, bool(text.least))
    moves = [rng.random() for _ in range(rng.choice((8, 16, 30)))]
    by_core = rng.random() < 0.3
    wrong = isolated(lambda: _check(text, vocabulary, moves, by_core, counts))
    if wrong:
        tries = 150 if protocol.is_careful else 0
        todo = list(_simpler(text))
        while todo and tries > 0:
            tries -= 1
            less = todo.pop(0)
            what = isolated(lambda less=less: _check(less, vocabulary, moves, by_core, Counts()))  # type: ignore[misc]
            if what and what.startswith("refused: ") == wrong.startswith("refused: "):
                text, wrong, todo = less, what, list(_simpler(less))
        moves, wrong = smallest(
            moves, lambda fewer: isolated(lambda: _check(text, vocabulary, fewer, by_core, Counts())), wrong
        )
        raise Difference(wrong, f"grammar = '''\n{text}\n'''\nmoves = {moves}\ntokens = {vocabulary.tokens!r}\n")
    return counts


KIND = Kind(
    "limited_rules",
    "masks token by token by all derivations of the text",
    run,
    60,
    {"masks": 600, "masks judged exactly": 400, "masks within budgets": 300},
)
