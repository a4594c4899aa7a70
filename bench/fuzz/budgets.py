"""Kind "budgets": under every budget a mask is what ``accept_token`` takes, and each text ends complete and in time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import constrain
from bench.fuzz import schemas_made, scripts, seams, vocabularies
from bench.fuzz.protocol import Budget, Counts, Difference, Kind
from constrain.engine.vocabulary.bitmasks import ids_in_mask


def _allowed(matcher: constrain.Matcher, mask: np.ndarray) -> np.ndarray:
    mask.fill(-1)
    matcher.fill_next_token_bitmask(mask)
    return ids_in_mask(mask[0])


def _accepted(matcher: constrain.Matcher, size: int) -> list[int]:
    found = []
    for token in range(size):
        if matcher.accept_token(token):
            matcher.rollback()
            found.append(token)
    return found


def with_limited_keys(rng: random.Random) -> Any:
    """A schema whose objects have only so many keys, short and long ones, with values short and long."""

    def word() -> str:
        return "".join(rng.choice("ab") for _ in range(rng.choice((0, 1, 1, 2, 3, 12, 30))))

    def value(depth: int) -> Any:
        return rng.choice(
            (
                {"const": 1},
                {"const": rng.choice("ab") * 20},
                {"type": "boolean"},
                {"type": "string", "maxLength": 3},
                {"type": "array", "items": {"const": 1}, "minItems": 6},
                held(depth + 1) if depth < 3 else True,
            )
        )

    def held(depth: int) -> Any:
        found: dict[str, Any] = {"type": "object", "additionalProperties": False}
        if rng.random() < 0.6:
            found["propertyNames"] = {"enum": [word() for _ in range(rng.randint(1, 4))]}
            found["additionalProperties"] = value(depth)
        else:
            texts = [f"{word()}({word()}|{word()}{rng.choice(('', 'b*', '[ab]'))})" for _ in range(rng.randint(1, 2))]
            found["patternProperties"] = {f"^{text}$": value(depth) for text in texts}
        found["minProperties"] = rng.choice((0, 0, 1, 2, 2, 3))
        if rng.random() < 0.3:
            found["properties"] = {word(): value(depth)}
        return found

    schema = held(0)
    around = rng.random()
    if around < 0.3:
        return {"anyOf": [{"const": 0}, schema]}
    return {"type": "array", "items": schema} if around < 0.5 else schema


_NARROW = (
    *("^b(|bbb*)$", "^b(|a{6}a*)$", "^a(|b{30}b*)$", "^b*$", "^(a|b*)$", "^a?b?$", "^(a|ba|b{5}[ab]*)$", "^[ab]+$"),
    *("^b(a|b{7})$", "^(b{9})*$", "^(a|[ab]{5})$", "^.$", "b$", "^[a-z]+$", "^x-"),
)


def with_narrow_keys(rng: random.Random) -> Any:
    """A schema whose objects have always another key, which may be much longer than the one before."""

    def value(depth: int) -> Any:
        ones = {"type": "array", "items": {"const": 1}, "minItems": rng.randrange(4)}
        return rng.choice(({"const": 1}, {"const": 1}, {"enum": [0, 1]}, ones, held(depth + 1) if depth < 2 else True))

    def held(depth: int) -> Any:
        found: dict[str, Any] = {"type": "object"}
        if rng.random() < 0.8:
            found["patternProperties"] = {rng.choice(_NARROW): value(depth) for _ in range(rng.randint(1, 2))}
        if rng.random() < 0.3:
            found["properties"] = {name: value(depth) for name in rng.sample(("a", "b", "bb"), 2)}
        found["additionalProperties"] = False if rng.random() < 0.7 else value(depth)
        if rng.random() < 0.2:
            found["propertyNames"] = rng.choice(({"pattern": rng.choice(_NARROW)}, {"maxLength": 2}, {"minLength": 2}))
        if rng.random() < 0.5:
            found["minProperties"] = rng.choice((1, 1, 1, 2, 3))
        if rng.random() < 0.2:
            found["maxProperties"] = found.get("minProperties", 1) + rng.randrange(2)
        if rng.random() < 0.2:
            found["dependentRequired"] = {rng.choice("ab"): [rng.choice(("a", "b", "kk"))]}
        return found

    schema = held(0)
    if rng.random() < 0.7:
        return schema
    return {"type": "array", "items": schema, "uniqueItems": rng.random() < 0.5, "minItems": rng.randrange(3)}


def with_repeated_items(rng: random.Random) -> Any:
    """A schema of arrays in which some item must come twice."""
    item = rng.choice(
        (
            True,
            {"type": "string", "minLength": rng.randrange(3), "maxLength": rng.choice((3, 40))},
            {"type": "string", "pattern": f"^(a|b{{{rng.randrange(1, 30)}}})*$"},
            {"type": ["integer", "null"], "minimum": rng.choice((-3, 0, 1000))},
            {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 0},
            {"type": "array", "items": {"type": "integer"}, "minItems": rng.randrange(3)},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"enum": ["a", "b" * 20, 7]},
            schemas_made.schema(rng, 1),
        )
    )
    found: dict[str, Any] = {"type": "array", "items": item, "not": {"uniqueItems": True}}
    if rng.random() < 0.4:
        found["minItems"] = rng.randrange(5)
    if rng.random() < 0.4:
        found["maxItems"] = rng.randrange(2, 6)
    around = rng.random()
    if around < 0.2:
        return {"anyOf": [{"const": 0}, found]}
    return {"type": "array", "items": found} if around < 0.3 else found


def with_lengths(rng: random.Random) -> Any:
    """A schema of strings with lengths beside patterns and formats, which count too."""
    found: dict[str, Any] = {"type": "string"}
    if rng.random() < 0.7:
        found["pattern"] = schemas_made.pattern(rng)
    if "pattern" not in found or rng.random() < 0.2:
        found["format"] = rng.choice(("uri", "email", "hostname", "date", "time", "ipv6", "uri-reference", "duration"))
    if rng.random() < 0.7:
        found["minLength"] = rng.choice((1, 1, 2, 5, 12))
    if rng.random() < 0.5:
        found["maxLength"] = found.get("minLength", 0) + rng.choice((1, 7, 30, 3000))
    return found if rng.random() < 0.5 else {"type": "object", "properties": {"a": found}, "required": ["a"]}


def with_unique_objects(rng: random.Random) -> Any:
    """A schema of objects that must be different, with few names or many, few values or many."""

    def value() -> Any:
        return rng.choice((True, {"const": 1}, {"type": "boolean"}, {"type": "integer"}, {"type": "string"}))

    item: dict[str, Any] = {"type": "object"}
    if rng.random() < 0.6:
        item["properties"] = {name: value() for name in rng.sample(("a", "b", "k"), rng.randint(1, 3))}
        item["required"] = [name for name in item["properties"] if rng.random() < 0.4]
    if rng.random() < 0.4:
        item["patternProperties"] = {rng.choice(("^a", "^b?$", "[ab]{2}")): value()}
    if rng.random() < 0.6:
        item["additionalProperties"] = rng.choice((False, value()))
    if rng.random() < 0.3:
        item["propertyNames"] = rng.choice(({"maxLength": 2}, {"pattern": "^[abk]"}, {"minLength": 2}))
    if rng.random() < 0.3:
        item["minProperties"] = rng.randrange(4)
    if rng.random() < 0.3:
        item["maxProperties"] = rng.randrange(1, 5)
    found = {"type": "array", "items": item, "uniqueItems": True, "minItems": rng.randrange(5)}
    if rng.random() < 0.3:
        found["maxItems"] = found["minItems"] + rng.randrange(3)
    return found


def walk(compiled: constrain.CompiledGrammar, most: int, rng: random.Random, counts: Counts) -> str:
    """One text of at most so many tokens; what is wrong with it, or an empty string."""
    vocabulary = compiled.vocabulary
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    matcher, free = constrain.Matcher(compiled, max_tokens=most), constrain.Matcher(compiled)
    path: list[int] = []
    every = rng.choice((1, 3, 10))
    while not matcher.is_terminated():
        at = f"max_tokens={most}, after {path} {[vocabulary.tokens[token] for token in path]!r}"
        allowed = _allowed(matcher, mask).tolist()
        counts["masks"] += 1
        if not allowed:
            return f"nothing is allowed, {at}"
        ends = [token for token in allowed if token in vocabulary.eos_ids]
        if bool(ends) != matcher.is_accepting():
            return f"an end token is allowed: {bool(ends)}, is_accepting(): {matcher.is_accepting()}, {at}"
        if len(path) >= most and len(ends) != len(allowed):
            return f"the budget is used up, and more than the end is allowed, {at}"
        if matcher.tokens_left != most - len(path):
            return f"tokens_left is {matcher.tokens_left}, {at}"
        more = set(allowed) - set(_allowed(free, mask).tolist())
        if more:
            return f"tokens are allowed that are not without a budget: {sorted(more)}, {at}"
        if len(path) % every == 0 and vocabulary.size < 2000:
            accepted = _accepted(matcher, vocabulary.size)
            counts["masks against accept_token"] += 1
            if accepted != allowed:
                wrong = set(accepted) ^ set(allowed)
                return f"mask and accept_token differ in {sorted(wrong)[:9]}, {at}"
        if len(path) % 5 == 0:
            completion = matcher.completion()
            ahead = matcher.fork()
            if len(completion) > most - len(path) or not all(map(ahead.accept_token, completion)):
                return f"completion() {completion} is not accepted, {at}"
            if not ahead.is_accepting():
                return f"completion() {completion} does not complete the text, {at}"
        token = rng.choice(ends if ends and rng.random() < 0.1 else allowed)
        if not matcher.accept_token(token):
            return f"token {token} is in the mask, and refused, {at}"
        if not free.accept_token(token):
            return f"token {token} is refused without a budget, {at}"
        if token not in vocabulary.eos_ids:
            path.append(token)
    counts["texts"] += 1
    return ""


def at_once(compiled: constrain.CompiledGrammar, most: int, rng: random.Random, counts: Counts) -> str:
    """The beginning of a text as one step of bytes, behind which the text must end in time, if it is accepted."""
    tokens = compiled.vocabulary.tokens
    mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
    free, matcher = constrain.Matcher(compiled), constrain.Matcher(compiled, max_tokens=most)
    text = b""
    for _ in range(rng.randint(1, 12)):
        onward = [token for token in _allowed(free, mask).tolist() if token not in compiled.vocabulary.eos_ids]
        if not onward:
            break
        token = rng.choice(onward)
        text += tokens[token]
        free.accept_token(token)
    if not text or not matcher.accept_bytes(text):
        return ""
    counts["beginnings at once"] += 1
    left, completion = matcher.tokens_left, matcher.completion()
    at = f"max_tokens={most}, after {text!r} at once"
    if left is None or len(completion) > left or not all(map(matcher.accept_token, completion)):
        return f"completion() {completion} is not accepted, {at}"
    return "" if matcher.is_accepting() else f"completion() {completion} does not complete the text, {at}"


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    source = rng.choice(scripts.SOURCES)
    if rng.random() < 0.6:
        options = {"whitespace": "compact"} if rng.random() < 0.8 else {}
        if rng.random() < 0.3:
            options["property_order"] = "any"
        makers = (
            with_limited_keys,
            with_narrow_keys,
            with_repeated_items,
            with_lengths,
            with_unique_objects,
            schemas_made.schema,
        )
        make = rng.choices(makers, (3, 3, 1, 2, 1, 5))[0]
        schema = make(rng)
        source = scripts.Source("json_schema", schema, options)
    vocabulary = vocabularies.small() if rng.random() < 0.9 else vocabularies.large()
    if rng.random() < 0.3:
        vocabulary = vocabularies.around_keys(rng)
    try:
        compiled = constrain.CompiledGrammar(source.grammar().ir, vocabulary)
        if rng.random() < 0.5:
            # There a budget goes by bounds where it can.
            seams.make_masks_by_core(compiled)
        shortest = len(constrain.Matcher(compiled).completion())
        constrain.Matcher(compiled, max_tokens=shortest)
    except constrain.ConstrainError:
        counts["refused"] += 1
        return counts
    for _ in range(8):
        most = shortest + rng.choice((0, 0, 1, 2, 3, 5, 10, rng.randrange(60)))
        wrong = walk(compiled, most, rng, counts) or at_once(compiled, most, rng, counts)
        if wrong:
            raise Difference(wrong, f"grammar = {source}")
    return counts


KIND = Kind(
    "budgets",
    "masks by accept_token of every token; texts by their end, which must come in time",
    run,
    60,
    {"masks": 1500, "texts": 200},
)
