"""A request's number of tokens, as a matcher's budget."""

from __future__ import annotations

import time

import pytest
from byte_tokens import BYTES

from constrain import Grammar, GrammarCompiler
from constrain.errors import LimitError
from constrain.integrations import request_matcher
from constrain.integrations.request_matcher import matcher_within


def test_the_shortest_text_is_looked_for_within_the_time() -> None:
    """To find it takes seconds here, in which a server answers nobody."""
    pattern = "(?=.*a.{300})(?=.*b.{200})(?=.*c.{150})[abc]{0,2000}"
    compiled = GrammarCompiler(BYTES).compile(Grammar.from_regex(pattern))
    before = time.process_time()
    with pytest.raises(LimitError, match=r"longer than 0\.2 s"):
        matcher_within(compiled, 30, time_limit=0.2)
    assert time.process_time() - before < 1


def test_what_takes_too_long_is_not_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = GrammarCompiler(BYTES).compile(Grammar.from_regex("[0-9]{3}"))
    tried = []

    def take_too_long(*arguments: object, **_options: object) -> None:
        tried.append(arguments)
        raise LimitError("too long")

    monkeypatch.setattr(request_matcher, "Matcher", take_too_long)
    with pytest.raises(LimitError, match="too long"):
        matcher_within(compiled, 30)
    assert len(tried) == 1
