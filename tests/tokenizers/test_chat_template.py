"""Chat templates: as transformers renders them, from every place they come from, and harmless if hostile."""

# ruff: noqa: E501  # templates are more readable unbroken

from __future__ import annotations

import json
import pickle

import pytest
from processor_time import processor_time

from constrain.errors import ConstrainError, LimitError, TokenizerError
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.chat import sandbox as template_sandbox
from constrain.tokenizers.chat.sandbox import written_length
from constrain.tokenizers.chat.templates import gguf_chat_template
from constrain.tokenizers.mock import MockTokenizer

CHATML = (
    "{%- for message in messages -%}\n    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>"
    "' + '\\n' -}}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n    {{- '<|im_start|>assistant\\n' -}}\n{%- endif -%}\n"
)
TEMPLATES = {
    "chatml": CHATML,
    "special tokens": "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content|trim }}{{ eos_token }}{% endfor %}",
    "roles checked": (
        "{% for m in messages %}\n  {% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}\n"
        "    {{ raise_exception('roles must alternate') }}\n  {% endif %}\n{{ m.content }}\n{% endfor %}"
    ),
    "tools": (
        "{% if tools is not none %}{% for tool in tools %}{{ tool | tojson(indent=4) }}\n{{ tool | tojson }}{% endfor %}"
        "{% endif %}{% for m in messages %}{{ m | tojson(sort_keys=true) }}{% endfor %}"
    ),
    "namespace and macro": (
        "{%- macro show(m, last) -%}<{{ m.role }}{{ '!' if last }}>{{ m.content }}{%- endmacro -%}"
        "{% set ns = namespace(found=false, text='') %}{% for m in messages %}"
        "{% if m.role == 'system' %}{% set ns.found = true %}{% continue %}{% endif %}"
        "{% set ns.text = ns.text ~ show(m, loop.last) %}{% if loop.index > 3 %}{% break %}{% endif %}{% endfor %}"
        "{{ ns.text }}{{ ns.found }}"
    ),
    "slices and methods": (
        "{% set first = messages[0] %}{{ first.content.split(' ')[-1].upper() }}{{ messages[1:]|length }}"
        "{{ messages|map(attribute='role')|join(', ') }}{{ ['a', 'b'] + ['c'] }}{{ {'x': (1, 2)} }}{{ '%s-%05d' % ('a', 7) }}"
        "{{ '{:>8}|'.format('r') }}{{ 'ab' * 3 }}{{ first.items()|list }}{{ messages|selectattr('role', 'eq', 'user')|list|length }}"
        "{{ 'line\nline'|indent(2) }}{{ dict(a=1)|dictsort }}{{ 'x,y'|replace(',', ';') }}{{ 1700000000|string }}"
    ),
    "white space": "  {% if true %}\n    yes\n  {% endif %}\n{# a comment #}\n  {%+ if true %}\n no{% endif %}\n\n",
    "generation": "{% for m in messages %}{% generation %}\n{{ m.content }}{% endgeneration %}\n{% endfor %}",
    "reasoning": "{% for m in messages %}{{ m.reasoning_content }}{{ m.thinking }}{{ m.tool_calls is defined }}{% endfor %}",
    "further variables": "{% if enable_thinking is defined and enable_thinking is false %}no{% else %}yes{% endif %}{{ year }}",
    "date": "{{ strftime_now('%Y') }}{% if date_string is not defined %}{% set date_string = '26 Jul' %}{% endif %}{{ date_string }}",
}
CHATS = [
    [{"role": "user", "content": "Hello there "}],
    [
        {"role": "system", "content": 'Be <brief> & "clear".'},
        {"role": "user", "content": "naïve 😀?"},
        {"role": "assistant", "content": "Yes.", "thinking": "hm", "tool_calls": None},
        {"role": "user", "content": "  More\n"},
    ],
]
TOOL = {"type": "function", "function": {"name": "f", "description": "<é>", "parameters": {"type": "object"}}}


def tokenizer_with(template):
    tokenizer = MockTokenizer()
    tokenizer.chat_template = template
    return tokenizer


@pytest.fixture(scope="module")
def reference():
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    empty = tokenizers.Tokenizer(tokenizers.models.BPE())
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=empty, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


def as_prepared(chat):
    """The chat as templates get it: a newer transformers sees to that, for one from before it is done here."""
    if hasattr(pytest.importorskip("transformers").utils.chat_template_utils, "_REASONING_FIELDS"):
        return chat
    messages = [{key: value for key, value in message.items() if value is not None} for message in chat]
    return [
        {**message, "reasoning_content": message["thinking"]} if "thinking" in message else message
        for message in messages
    ]


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("chat", CHATS, ids=["one", "several"])
@pytest.mark.parametrize("tools", [None, [TOOL]], ids=["no tools", "tools"])
@pytest.mark.parametrize("prompt", [False, True])
def test_text_equals_that_of_transformers(reference, name, chat, tools, prompt):
    options = {"tools": tools, "add_generation_prompt": prompt, "enable_thinking": False, "year": 2024}

    def run(tokenizer, messages=chat, **more):
        try:
            return tokenizer.apply_chat_template(messages, **options, **more)
        except Exception as error:
            return str(error).removeprefix("the chat template says: ")

    expected = run(reference, as_prepared(chat), chat_template=TEMPLATES[name], tokenize=False)
    assert run(tokenizer_with(TEMPLATES[name])) == expected
    assert expected != "" or name in ("further variables",)


@pytest.mark.parametrize("template", [CHATML, TEMPLATES["special tokens"]])
@pytest.mark.parametrize("content", ["I think ", "no space"])
def test_going_on_with_the_last_message_equals_transformers(reference, template, content):
    chat = [*CHATS[0], {"role": "assistant", "content": content}]
    expected = reference.apply_chat_template(chat, chat_template=template, continue_final_message=True, tokenize=False)
    assert tokenizer_with(template).apply_chat_template(chat, continue_final_message=True) == expected
    blocks = [*CHATS[0], {"role": "assistant", "content": [{"type": "text", "text": content}]}]
    in_blocks = "{% for m in messages %}{{ m.content if m.content is string else m.content[0].text }}|{% endfor %}"
    text = tokenizer_with(in_blocks).apply_chat_template(blocks, continue_final_message=True)
    assert text == f"Hello there |{content}"


def test_templates_by_name():
    tokenizer = tokenizer_with({"default": "d", "tool_use": "t", "rag": "r"})
    chat = CHATS[0]
    assert tokenizer.apply_chat_template(chat) == "d"
    assert tokenizer.apply_chat_template(chat, tools=[TOOL]) == "t"
    assert tokenizer.apply_chat_template(chat, template="rag") == "r"
    assert tokenizer.apply_chat_template(chat, template="{{ messages|length }}") == "1"
    with pytest.raises(TokenizerError, match="template=, of rag"):
        tokenizer_with({"rag": "r"}).apply_chat_template(chat)
    assert tokenizer_with("a").apply_chat_template(chat, template="b{{ '' }}") == "b"
    with pytest.raises(TokenizerError, match="no chat template is named 'rug'; there are: default, rag"):
        tokenizer.apply_chat_template(chat, template="rug")
    with pytest.raises(TokenizerError, match="no chat template is named 'b'; this tokenizer has one without a name"):
        tokenizer_with("a").apply_chat_template(chat, template="b")
    assert pickle.loads(pickle.dumps(tokenizer)).apply_chat_template(chat) == "d"


def test_no_template_says_how_to_give_one():
    with pytest.raises(TokenizerError, match=r"set tokenizer\.chat_template, or give chat_template= to load_tokenizer"):
        MockTokenizer().apply_chat_template(CHATS[0])


@pytest.fixture
def folder(small_json, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json))
    return tmp_path


def render(folder, **options):
    return load_tokenizer(folder, **options).apply_chat_template(CHATS[0])


def test_where_templates_come_from(folder):
    with pytest.raises(TokenizerError, match="no chat template"):
        render(folder)
    (folder / "chat_template.json").write_text('{"chat_template": "processor"}')
    assert render(folder) == "processor"
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": "config {{ eos_token }}", "eos_token": "<|endoftext|>"}))
    assert render(folder) == "config <|endoftext|>"
    config.write_text(json.dumps({"chat_template": [{"name": "default", "template": "list"}]}))
    assert render(folder) == "list"
    (folder / "chat_template.jinja").write_text("file\n")
    assert render(folder) == "file"
    assert render(folder / "tokenizer.json") == "file"
    assert render(folder, chat_template="given") == "given"
    more = folder / "additional_chat_templates"
    more.mkdir()
    (more / "rag.jinja").write_text("rag")
    tokenizer = load_tokenizer(folder)
    assert tokenizer.apply_chat_template(CHATS[0], template="rag") == "rag"
    assert tokenizer.apply_chat_template(CHATS[0]) == "file"
    tokenizer.chat_template = "at run time"
    assert tokenizer.apply_chat_template(CHATS[0]) == "at run time"


def test_a_template_by_its_path(folder, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("templates")
    (elsewhere / "mine.jinja").write_text("mine {{ messages|length }}\n")
    (elsewhere / "plain").write_text("plain")
    (elsewhere / "tokenizer_config.json").write_text(json.dumps({"chat_template": "config"}))
    for path in (elsewhere / "mine.jinja", str(elsewhere / "mine.jinja")):
        assert render(folder, chat_template=path) == "mine 1"
    assert render(folder, chat_template=elsewhere / "tokenizer_config.json") == "config"
    assert render(folder, chat_template=elsewhere) == "config"
    assert render(folder, chat_template={"default": elsewhere / "plain"}) == "plain"
    assert render(folder, chat_template="{{ messages|length }}/{{ 2 }}") == "1/2", "a template with a separator"
    monkeypatch.chdir(elsewhere)
    assert render(folder, chat_template="plain") == "plain"
    assert render(folder, chat_template="no such") == "no such", "nothing there, and it does not look like a path"
    tokenizer = load_tokenizer(folder)
    tokenizer.chat_template = elsewhere / "mine.jinja"
    assert tokenizer.apply_chat_template(CHATS[0]) == "mine 1"


def test_a_path_without_a_template(folder):
    for path in (folder / "no.jinja", str(folder / "no.jinja"), "no.jinja", "templates/no"):
        with pytest.raises(TokenizerError, match=r"no(\.jinja)?: No such file"):
            load_tokenizer(folder, chat_template=path)
    (folder / "config.json").write_text("{}")
    with pytest.raises(TokenizerError, match=r"config.json: no chat template is in it"):
        load_tokenizer(folder, chat_template=folder / "config.json")
    with pytest.raises(TokenizerError, match="chat_template must be"):
        load_tokenizer(folder, chat_template=5)


def test_gguf_metadata():
    key = "tokenizer.chat_template"
    assert gguf_chat_template({"general.name": "x", "tokenizer.chat_templates": ["rag"]}) is None
    assert gguf_chat_template({key: "d"}) == "d"
    assert gguf_chat_template({key: "d", f"{key}.rag": "r"}) == {"default": "d", "rag": "r"}
    assert gguf_chat_template({f"{key}.rag": "r"}) == {"rag": "r"}
    assert gguf_chat_template({key: "é".encode()}) == "é"
    with pytest.raises(TokenizerError, match=r"tokenizer.chat_template is not UTF-8 \(byte 1\)"):
        gguf_chat_template({key: b"a\xff"})
    with pytest.raises(TokenizerError, match="chat_template must be"):
        gguf_chat_template({key: 3})


def test_files_that_make_no_sense(folder):
    for entry in (3, [{"name": "x"}], {"default": 1}, ["x"]):
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": entry}))
        with pytest.raises(TokenizerError, match=r"tokenizer_config.json: chat_template must be"):
            load_tokenizer(folder)
    (folder / "chat_template.jinja").write_bytes(b"ab\xff")
    with pytest.raises(TokenizerError, match=r"chat_template.jinja: not UTF-8 \(byte 2\)"):
        load_tokenizer(folder)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a\n{% if %}", "chat template, line 2"),
        ("{% for x in y %}", "chat template, line 1"),
        ("{{ 'a'|urlize }}", "No filter named 'urlize'"),
        ("{{ raise_exception('only one system message') }}", "says: only one system message"),
        ("{{ raise_exception('one\\n\\ntwo') }}", "says: one two"),
        ("{{ messages[9].content.x }}", "has no element 9"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ 'a' + 1 }}", "TypeError"),
        ("{% include 'x' %}", "loader"),
        ("{{ messages.append(1) }}", "unsafe|not safely"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ cycler.__init__.__globals__.os }}", "unsafe"),
        ("{{ messages[0].update(a=1) }}", "unsafe|not safely"),
        ("{{ [[1]]|sum(start=[]) }}", "sum is for numbers"),
        ("{{ namespace|tojson }}", "not JSON"),
    ],
)
def test_templates_with_an_error(template, message):
    with pytest.raises(TokenizerError, match=message):
        tokenizer_with(template).apply_chat_template(CHATS[0])


BIG = "{% set ns = namespace(x='0123456789') %}{% for i in range(60) %}"
HOSTILE = {
    "loops": "{% for i in range(99999) %}" * 4 + "{% endfor %}" * 4,
    "loop over a literal": "{% for a in [1]*9999 %}{% for b in [1]*9999 %}{% for c in [1]*9999 %}{% endfor %}{% endfor %}{% endfor %}",
    "recursive macro": "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "endless macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "range": "{{ range(999999999)|list }}",
    "doubling by ~": BIG + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "doubling by +": BIG + "{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "doubling by join": BIG + "{% set ns.x = [ns.x, ns.x]|join %}{% endfor %}",
    "doubling by str.join": BIG + "{% set ns.x = ''.join([ns.x, ns.x]) %}{% endfor %}",
    "doubling by %": BIG + "{% set ns.x = '%s%s' % (ns.x, ns.x) %}{% endfor %}",
    "doubling by format": BIG + "{% set ns.x = '{0}{0}'.format(ns.x) %}{% endfor %}",
    "doubling by filter format": BIG + "{% set ns.x = '%s%s'|format(ns.x, ns.x) %}{% endfor %}",
    "doubling by a block": BIG + "{% set x %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = x %}{% endfor %}",
    "doubling by a macro": BIG + "{% macro f() %}{{ ns.x }}{{ ns.x }}{% endmacro %}{% set ns.x = f() %}{% endfor %}",
    "doubling by replace": BIG + "{% set ns.x = ns.x|replace('0', ns.x) %}{% endfor %}",
    "doubling by str.replace": BIG + "{% set ns.x = ns.x.replace('0', ns.x) %}{% endfor %}",
    "doubling by lists": BIG + "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "doubling by tuples": BIG + "{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ ns.x|string }}",
    "doubling by dicts": BIG + "{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}{{ ns.x|tojson }}",
    "doubling by dict()": BIG + "{% set ns.x = dict(a=ns.x, b=ns.x) %}{% endfor %}{{ ns.x == ns.x }}",
    "doubling by batch": BIG + "{% set ns.x = [ns.x]|batch(2, ns.x)|list %}{% endfor %}{{ ns.x }}",
    "namespaces": "{% set ns = namespace() %}{% for i in range(60) %}{% set b = namespace(a=ns, b=ns) %}{% endfor %}"
    + BIG
    + "{% set ns.x = namespace(a=ns.x, b=ns.x) %}{% endfor %}{{ ns.x }}{{ 'x' * 10**9 }}",
    "repetition": "{{ 'x' * 10**9 }}",
    "repetition of a list": "{{ ([0] * 10**9)|length }}",
    "repetition, turned": "{{ (10**9 * 'x')|length }}",
    "power": "{{ 10 ** (10 ** 10) }}",
    "products": "{% set ns = namespace(x=3) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "width by %": "{{ '%999999999d' % 1 }}",
    "width by % *": "{{ '%*d' % (999999999, 1) }}",
    "many widths": "{{ ('%99999d' * 999) % ((1,) * 999) }}",
    "width by format": "{{ '{:999999999}'.format(1) }}",
    "width in a field": "{{ '{:{}}'.format(1, 999999999) }}",
    "width in a later field": "{{ '{:>{w}}'.format(1, w=999999999) }}",
    "center": "{{ 'x'|center(999999999) }}",
    "str.center": "{{ 'x'.center(999999999) }}",
    "zfill": "{{ 'x'.zfill(999999999) }}",
    "expandtabs": "{{ ('\t' * 99999).expandtabs(99999) }}",
    "indent": "{{ ('\n' * 99999)|indent(99999) }}",
    "indent by text": "{{ ('\n' * 99999)|indent('x' * 99999) }}",
    "batch": "{{ [1]|batch(999999999, 0)|list }}",
    "slice": "{{ [1]|slice(999999999)|list }}",
    "to_bytes": "{{ (1).to_bytes(999999999, 'big') }}",
    "tojson": "{{ ([[]] * 9999)|tojson(indent=99999) }}",
    "translate": "{{ ('x' * 99999).translate({120: 'y' * 99999}) }}",
    "join": "{{ (['x'] * 99999)|join('y' * 99999) }}",
    "str.join": "{{ ('y' * 99999).join(['x'] * 99999) }}",
    "strftime": "{{ strftime_now('%Y' * 99999) }}",
    "output": "{% for i in range(9999) %}" + "x" * 9999 + "{% endfor %}",
    "deep": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "deep lists": "{{ " + "[" * 9000 + "]" * 9000 + " }}",
    "deep ifs": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "long": " " * 2**19,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_cost_bounded_time(name, monkeypatch):
    monkeypatch.setattr(template_sandbox, "SECONDS", 0.2)
    with processor_time() as spent, pytest.raises(ConstrainError):
        tokenizer_with(HOSTILE[name]).apply_chat_template(CHATS[0])
    assert spent.seconds < 3


def test_a_limit_says_its_name(monkeypatch):
    with pytest.raises(LimitError, match=r"constrain\.tokenizers\.chat\.sandbox\.CHARACTERS"):
        tokenizer_with("{{ 'x' * 10**9 }}").apply_chat_template(CHATS[0])
    monkeypatch.setattr(template_sandbox, "SECONDS", 0.01)
    with pytest.raises(LimitError, match=r"more than 0.01 s; the limit is constrain.tokenizers.chat.sandbox.SECONDS"):
        tokenizer_with(HOSTILE["loops"]).apply_chat_template(CHATS[0])


def test_messages_that_make_no_sense():
    tokenizer = tokenizer_with(CHATML)
    nested = []
    for _ in range(100_000):
        nested = [nested]
    for messages, message in (
        ([], "at least one"),
        ("hi", "at least one"),
        ([3], "message 0 is int"),
        ([{"role": "user", "content": object()}], "message 0 holds object"),
        ([{"role": "user", "content": nested}], "message 0 is nested too deeply"),
        ([{"role": "user", "content": [1]}], "TypeError"),
    ):
        with pytest.raises(TokenizerError, match=message):
            tokenizer.apply_chat_template(messages)
    with pytest.raises(TokenizerError, match="exclude each other"):
        tokenizer.apply_chat_template(CHATS[0], add_generation_prompt=True, continue_final_message=True)
    with pytest.raises(TokenizerError, match="no text to go on from"):
        tokenizer.apply_chat_template([{"role": "user"}], continue_final_message=True)
    with pytest.raises(TokenizerError, match="leaves the last message out"):
        tokenizer_with("x").apply_chat_template(CHATS[0], continue_final_message=True)
    with pytest.raises(TokenizerError, match="tool must be an object"):
        tokenizer.apply_chat_template(CHATS[0], tools=["f"])


def test_written_length():
    for value in ("abc", [], [[1, 2], "xyz"], {"a": (1, 2)}, {"a": 1}.items()):
        assert len(str(value)) / 8 <= written_length(value) <= 2 * len(str(value)) + 3
    shared = "0123456789"
    for _ in range(10):
        shared = [shared, shared]
    assert len(str(shared)) / 4 < written_length(shared) < len(str(shared))
