"""Where chat templates run: a Jinja sandbox that also bounds time and memory.

A template comes with a model and is as trustworthy as the maker of the model.  Jinja's sandbox keeps a template away
from Python's internals and from changing its arguments.  It does not keep a template from looping for ever or from
doubling a string forty times.  Here every loop and every call counts, whatever makes a string or a container is checked
before it is made or while it is made, and a clock runs:

* no string above :data:`CHARACTERS`, and no container that would be longer than that when it is printed (a list that
  holds the same list twice, forty levels deep, is short in memory and endless when it is printed);
* no number above :data:`LARGEST_NUMBER` as an argument, no repetition or power above the limits;
* :data:`SECONDS` for one rendering.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import jinja2.utils

from constrain.errors import LimitError
from constrain.tokenizers.chat.marked_filters import FILTERS, marked, marked_format, with_marks_of
from constrain.tokenizers.chat.marked_text import (
    CONTENT,
    TEMPLATE,
    MarkedText,
    common_mark,
    generated,
    origins_of,
    plain,
)

CHARACTERS = 2**24
"""Longest string, in characters, and longest container, in characters and members."""
LARGEST_NUMBER = 100_000
"""Largest number that a call or a filter takes, since some take it for a width."""
SECONDS = 5.0
"""Wall-clock time for one rendering."""

BITS = 4096
"""Longest product or power, in bits."""
DATE_CHARACTERS = 1000
"""Longest format of a date, and longest message of ``raise_exception``."""

_NESTED_WIDTH = re.compile(r":[^}]*\{|\*")
_WIDTH = re.compile(r"\d+")
_GENERATION = "generation of an assistant"
"""The filter of ``{% generation %}``; no template can spell its name."""
_NOTHING = MarkedText()
_UNUSED_FILTERS = ("pprint", "random", "urlize", "wordwrap", "xmlattr")
_SEQUENCES: Any = (list, tuple, set, frozenset, type({}.keys()), type({}.values()), type({}.items()))


def _exceeded(what: str, limit: str) -> LimitError:
    return LimitError(f"the chat template {what}; the limit is constrain.tokenizers.chat.sandbox.{limit}")


def written_length(value: Any) -> int:
    """About how many characters ``value`` has when it is printed; containers that are shared count each time."""
    lengths: dict[int, int] = {}
    # Depth first without recursion: a container is measured once all of its members are.
    stack = [value]
    while stack:
        item = stack[-1]
        if id(item) in lengths:
            stack.pop()
            continue
        members = _members(item)
        waiting = [member for member in members if id(member) not in lengths and _members(member)]
        if waiting:
            stack += waiting
            continue
        total = 1 + len(members)
        for member in members:
            total += lengths[id(member)] if id(member) in lengths else _own_length(member)
        lengths[id(item)] = total + _own_length(item)
        stack.pop()
    return lengths[id(value)]


def _members(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return [*value] if isinstance(value, _SEQUENCES) else []


def _own_length(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes)) else 1


class Namespace(jinja2.utils.Namespace):
    """Jinja's namespace; its members are not printed, because it may be one of them."""

    def __repr__(self) -> str:
        return "<Namespace>"


class _GenerationTag(jinja2.ext.Extension):
    """``{% generation %}`` marks what an assistant said, for training."""

    tags = {"generation"}  # noqa: RUF012  # as the base class declares it

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        kept = jinja2.nodes.Filter(None, _GENERATION, [], [], None, None, lineno=line)
        return jinja2.nodes.FilterBlock(body, kept, lineno=line)


class _Bounder(jinja2.visitor.NodeTransformer):
    """Rewrites a template so that loops count, literals and ``~`` are checked, and the template's own text is marked.

    ``texts`` gets the template's own strings.
    """

    def __init__(self, texts: list[MarkedText]) -> None:
        self._texts = texts

    def visit_Const(self, node: Any) -> Any:
        return self._own_text(node, node.value) if isinstance(node.value, str) else node

    def visit_TemplateData(self, node: Any) -> Any:
        return self._own_text(node, node.data)

    def visit_Getitem(self, node: Any) -> Any:
        # A name of a member becomes part of no text.
        node.node = self.visit(node.node)
        if not isinstance(node.arg, jinja2.nodes.Const):
            node.arg = self.visit(node.arg)
        return node

    def visit_Operand(self, node: Any) -> Any:
        if not isinstance(node.expr, jinja2.nodes.Const):
            node.expr = self.visit(node.expr)
        return node

    def _own_text(self, node: Any, text: str) -> Any:
        self._texts.append(MarkedText(text, TEMPLATE))
        texts = jinja2.nodes.EnvironmentAttribute("own_texts", lineno=node.lineno)
        place = jinja2.nodes.Const(len(self._texts) - 1, lineno=node.lineno)
        return jinja2.nodes.Getitem(texts, place, "load", lineno=node.lineno)

    def visit_For(self, node: Any) -> Any:
        return self._counting(node)

    visit_Macro = visit_CallBlock = visit_For

    def visit_Concat(self, node: Any) -> Any:
        self.generic_visit(node)
        return self._call("bounded_concat", node.nodes)

    def visit_List(self, node: Any) -> Any:
        self.generic_visit(node)
        return self._call("bounded", [node])

    visit_Dict = visit_List

    def visit_Tuple(self, node: Any) -> Any:
        self.generic_visit(node)
        return self._call("bounded", [node]) if node.ctx == "load" else node

    def _counting(self, node: Any) -> Any:
        self.generic_visit(node)
        node.body.insert(0, jinja2.nodes.ExprStmt(self._call("count", []), lineno=node.lineno))
        return node

    @staticmethod
    def _call(name: str, arguments: list[Any]) -> Any:
        line = arguments[0].lineno if arguments else 1
        function = jinja2.nodes.EnvironmentAttribute(name, lineno=line)
        return jinja2.nodes.Call(function, arguments, [], None, None, lineno=line)


class TemplateSandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The environment of chat templates, with the functions, filters and settings of Hugging Face's.

    Threads may share one.
    """

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        # The optimizer would run what a template says while it is compiled.
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            finalize=self.shown,
            extensions=[jinja2.ext.loopcontrols, _GenerationTag],
        )
        self._clock = threading.local()
        self.own_texts: list[MarkedText] = []
        self.concat = self._join  # type: ignore[method-assign]  # of the pieces of a macro, a block or a template
        for name in _UNUSED_FILTERS:
            del self.filters[name]
        self.filters.update(FILTERS)
        for name, function in list(self.filters.items()):
            self.filters[name] = self._checked(name, function)
        self.filters["tojson"] = self._to_json
        self.filters[_GENERATION] = generated
        del self.globals["lipsum"]
        self.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now, namespace=Namespace)

    def run(self, template: jinja2.Template, variables: dict[str, Any]) -> MarkedText:
        """Render with a fresh clock."""
        self._clock.deadline = time.monotonic() + SECONDS
        # The environment's own concatenation makes the text, which may be none.
        text = template.render(variables)
        return text if isinstance(text, MarkedText) else MarkedText(text)

    # What the rewritten template calls.

    def count(self) -> None:
        """One more step."""
        if time.monotonic() > getattr(self._clock, "deadline", float("inf")):
            raise _exceeded(f"took more than {SECONDS:g} s", "SECONDS")

    def bounded(self, value: Any) -> Any:
        """``value``, if it is not too long."""
        if isinstance(value, (str, bytes)):
            length = len(value)
        elif isinstance(value, (Mapping, *_SEQUENCES)):
            length = written_length(value)
        else:
            return value
        self._check_length(length)
        return value

    def shown(self, value: Any) -> Any:
        """What is written where a template says ``{{ value }}``."""
        return marked(self.bounded(value))

    def bounded_concat(self, *values: Any) -> str:
        """``a ~ b``."""
        return self._join([str(self.shown(value)) for value in values])

    # What Jinja calls.

    def _parse(self, source: str, name: str | None, filename: str | None) -> Any:
        return _Bounder(self.own_texts).visit(super()._parse(source, name, filename))

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.count()
        # Formatting comes wrapped by the sandbox.
        method = getattr(function, "__wrapped__", function)
        owner = getattr(method, "__self__", None)
        if isinstance(owner, (str, bytes)):
            args = self._check_text_call(str(getattr(method, "__name__", "")), owner, args, kwargs)
        if not isinstance(function, jinja2.runtime.Macro):
            self._check_numbers(args, kwargs)
        result = self.bounded(super().call(context, function, *args, **kwargs))
        if type(result) is str:
            return MarkedText(result, common_mark((args, kwargs, () if owner is None else (owner,))))
        return result

    def wrap_str_format(self, value: Any) -> Any:
        wrapped = super().wrap_str_format(value)
        text = getattr(value, "__self__", None)
        if wrapped is None or not isinstance(text, MarkedText):
            return wrapped

        @wraps(value)
        def formatted(*args: Any, **kwargs: Any) -> MarkedText:
            result = plain(wrapped(*args, **kwargs))
            formatter = jinja2.sandbox.SandboxedFormatter(self)
            if value.__name__ == "format_map":
                (mapping,) = args
                return marked_format(formatter, text, (), mapping, result)
            return marked_format(formatter, text, args, kwargs, result)

        return formatted

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(many, (str, bytes, list, tuple)) and isinstance(times, int):
                    self._check_length(written_length(many) * max(times, 0))
        elif operator == "%" and isinstance(left, (str, bytes)):
            self._check_format(left, right if isinstance(right, tuple) else (right,))
        if isinstance(left, int) and isinstance(right, int):
            bits = abs(left).bit_length() * (abs(right) if operator == "**" else 1) + abs(right).bit_length()
            if bits > BITS and operator in ("*", "**"):
                raise _exceeded(f"computes a number of more than {BITS} bits", "BITS")
        return self.bounded(super().call_binop(context, operator, left, right))

    def _checked(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter whose arguments and result are checked."""
        special = {"replace": "replace", "join": "join", "indent": "indent", "format": "format"}.get(name)

        @wraps(function)
        def filter_(*args: Any, **kwargs: Any) -> Any:
            self.count()
            # Some filters get the context in front of what they filter.
            first = 1 if hasattr(function, "jinja_pass_arg") else 0
            for value in (*args[first:], *kwargs.values()):
                self.bounded(value)
            self._check_numbers(args[first + 1 :], kwargs)
            if name == "sum" and not isinstance(
                kwargs.get("start", args[first + 2] if len(args) > first + 2 else 0), int
            ):
                raise jinja2.TemplateError("sum is for numbers")
            if special is not None and len(args) > first:
                text, rest = args[first], (*args[first + 1 :], *kwargs.values())
                if special == "join":
                    text = list(text)
                    separator = str(rest[0]) if rest else ""
                    self._check_length(written_length(text) + len(text) * len(separator))
                    args = (*args[:first], text, *args[first + 1 :])
                elif special == "indent":
                    width = rest[0] if rest else 4
                    self._check_length(
                        (str(text).count("\n") + 1) * (width if isinstance(width, int) else len(str(width)))
                    )
                else:
                    self._check_text_call(special, str(text), rest, {})
            result = self.bounded(function(*args, **kwargs))
            if isinstance(result, MarkedText) or not isinstance(result, str):
                return result
            return with_marks_of(result, args[first:], kwargs)

        return filter_

    def _check_text_call(
        self, name: str, text: str | bytes, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Check a method of a string before it makes something long; returns the arguments, read only once."""
        values = (*args, *kwargs.values())
        if name == "replace" and len(values) >= 2 and all(isinstance(value, (str, bytes)) for value in values[:2]):
            times = text.count(values[0]) if values[0] else len(text) + 1
            self._check_length(len(text) + times * len(values[1]))
        elif name == "join" and args:
            parts = list(args[0])
            self._check_length(sum(map(_own_length, parts)) + len(text) * len(parts))
            args = (parts, *args[1:])
        elif name in ("format", "format_map"):
            self._check_format(text, values)
        elif name == "expandtabs":
            self._check_length(len(text) * max((value for value in values if isinstance(value, int)), default=8))
        elif name == "translate":
            self._check_length(len(text) * max(map(written_length, values), default=1))
        return args

    def _check_format(self, text: str | bytes, values: tuple[Any, ...]) -> None:
        """Fields can be wide, and show an argument many times."""
        string = text if isinstance(text, str) else text.decode("latin-1")
        widths = sum(int(digits) if len(digits) < 10 else CHARACTERS + 1 for digits in _WIDTH.findall(string))
        fields = string.count("{") + string.count("%")
        longest = max(map(written_length, values), default=0)
        if _NESTED_WIDTH.search(string):  # a width that is itself an argument
            longest += max((abs(value) for value in values if isinstance(value, int)), default=0)
        self._check_length(len(string) + widths + fields * longest)

    def _check_numbers(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        for value in (*args, *kwargs.values()):
            if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
                raise _exceeded(f"gives a function a number above {LARGEST_NUMBER}", "LARGEST_NUMBER")

    def _check_length(self, length: int) -> None:
        if length > CHARACTERS:
            raise _exceeded(f"makes a text or a list of {length} characters or members", "CHARACTERS")

    def _join(self, parts: Any) -> MarkedText:
        pieces, length = [], 0
        for part in parts:
            pieces.append(part)
            length += len(part)
            self._check_length(length)
        return _NOTHING.join(pieces)

    def _to_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """Unlike Jinja's own it leaves ``<``, ``>`` and ``&`` alone."""
        self.count()
        self.bounded(value)
        self._check_numbers((), {"indent": indent})
        encoder = json.JSONEncoder(
            ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys, default=_no_json
        )
        text = plain(self._join(encoder.iterencode(value)))
        # Text of messages among the template's own makes all of it untrusted: there are no special tokens in JSON.
        return MarkedText(text, CONTENT if CONTENT in origins_of(value) else common_mark(value))


def _no_json(value: Any) -> Any:
    raise jinja2.TemplateError(f"{type(value).__name__} is not JSON")


def _raise_exception(message: Any) -> None:
    raise jinja2.TemplateError(str(message)[:DATE_CHARACTERS])


def _strftime_now(format: str) -> str:
    if len(format) > DATE_CHARACTERS:
        raise _exceeded(f"formats a date with more than {DATE_CHARACTERS} characters", "DATE_CHARACTERS")
    return datetime.now().strftime(format)
