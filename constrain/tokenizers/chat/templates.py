"""Chat templates: from a list of messages to the text that a chat model was trained on.

The templates are Jinja, with the variables, functions and settings that Hugging Face gives them.
They come with the model, and run in a sandbox (rendering.py, sandbox.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import checked_path, checked_text
from constrain.tokenizers.chat.marked_text import CONTENT, TEMPLATE, MarkedText, written_by
from constrain.tokenizers.file_errors import errors_of
from constrain.tokenizers.json_files import read_json

ChatTemplates = str | Mapping[str, str]
"""One template, or several by name; ``"default"`` is the one without a name, ``"tool_use"`` is for tools."""

HOW_TO_GIVE_ONE = (
    "set tokenizer.chat_template, or give chat_template= to load_tokenizer, or put a chat_template.jinja beside the"
    " tokenizer"
)

GENERATION_TAG = re.compile(r"\{%[-+]?\s*generation\b")
"""What marks the assistant's words in a template."""

_FILE_ENDS = (".jinja", ".jinja2", ".j2", ".json", ".txt", ".tmpl")
# The space at the end shows whether a template trims the text.
_CONTINUE = "\ue000continue\ue000 "
_COMMON_ROLES = "system user assistant tool function developer model human bot gpt"
_ROLES = frozenset(f"{_COMMON_ROLES} observation ipython environment critic".split())
"""Roles of messages that count as the template's own words."""
_REASONING = ("reasoning_content", "thinking", "reasoning")


def read_chat_template(folder: Path) -> ChatTemplates | None:
    """The chat templates of a model folder, or ``None``.

    ``chat_template.jinja`` and ``additional_chat_templates/*.jinja`` count before the entry
    ``chat_template`` of ``tokenizer_config.json``, which is a template or a list of named ones, and
    before an older ``chat_template.json``.
    """
    named: dict[str, str] = {}
    if (folder / "chat_template.jinja").is_file():
        named["default"] = _read_text(folder / "chat_template.jinja")
    for file in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        named[file.stem] = _read_text(file)
    if named:
        return named["default"] if list(named) == ["default"] else named
    for name in ("tokenizer_config.json", "chat_template.json"):
        if (folder / name).is_file():
            entry = read_json(folder / name).get("chat_template")
            if entry is not None:
                try:
                    return parse_chat_template(entry)
                except TokenizerError as error:
                    raise TokenizerError(f"{folder / name}: {error}") from None
    return None


def given_chat_template(given: Any) -> ChatTemplates:
    """The templates that somebody hands over: a template, the path of one or of a model folder, or several by name.

    A path is a :class:`os.PathLike`, or a string without braces and line ends that names a file or looks as if it did
    (it has a separator, or ends as template files do).  Such a string is hardly a template: without braces a template
    would give the same text for every conversation.

    Raises :class:`TokenizerError` with the path if nothing is there.
    """
    if isinstance(given, PathLike):
        return _templates_at(checked_path(given, "chat_template"))
    if isinstance(given, str) and "{" not in given and "\n" not in given:
        looks = given.endswith(_FILE_ENDS) or "/" in given or os.sep in given
        if looks or (given and os.path.exists(given)):
            return _templates_at(Path(given))
    if isinstance(given, Mapping):
        given = {
            name: _one_template(text, f"chat_template {name!r}") if isinstance(text, PathLike) else text
            for name, text in given.items()
        }
    return parse_chat_template(given)


def _one_template(path: PathLike[str], what: str) -> str:
    template = _templates_at(checked_path(path, what))
    if not isinstance(template, str):
        raise TokenizerError(f"{path}: several templates, where one was expected")
    return template


def _templates_at(path: Path) -> ChatTemplates:
    found: ChatTemplates | None
    if path.is_dir():
        found = read_chat_template(path)
    elif path.suffix == ".json" and path.is_file():
        entry = read_json(path).get("chat_template")
        found = None if entry is None else parse_chat_template(entry)
    else:
        found = _read_text(path)
    if found is None:
        raise TokenizerError(f"{path}: no chat template is in it")
    return found


def gguf_chat_template(metadata: Mapping[str, Any]) -> ChatTemplates | None:
    """The chat templates in a GGUF file's metadata, or ``None``.

    ``tokenizer.chat_template`` is the default one; ``tokenizer.chat_template.NAME`` are further ones.  They are
    text, or bytes of UTF-8.
    """
    key = "tokenizer.chat_template"
    named: dict[str, Any] = {}
    for name, value in metadata.items():
        if name == key or name.startswith(key + "."):
            try:
                text = value.decode("utf-8") if isinstance(value, bytes) else value
            except UnicodeDecodeError as error:
                raise TokenizerError(f"{name} is not UTF-8 (byte {error.start})") from None
            named[name[len(key) + 1 :] or "default"] = text
    if not named:
        return None
    templates = parse_chat_template(named)
    return named["default"] if list(named) == ["default"] else templates


def parse_chat_template(entry: Any) -> ChatTemplates:
    """The templates in a configuration: a string, an object, or a list of objects with name and template."""
    if isinstance(entry, str):
        return entry
    if isinstance(entry, list):
        try:
            entry = {item["name"]: item["template"] for item in entry}
        except (KeyError, TypeError):
            entry = None
    if not isinstance(entry, Mapping) or not all(isinstance(text, str) for pair in entry.items() for text in pair):
        raise TokenizerError('chat_template must be a string or a list of {"name": ..., "template": ...}')
    return dict(entry)


def choose_template(templates: ChatTemplates | None, name: str | None, has_tools: bool) -> str:
    """The source of the template to use; ``name`` is a name of :data:`ChatTemplates` or itself a template."""
    if name is not None:
        checked_text(name, "template=")
    if isinstance(templates, Mapping):
        if name is None:
            name = "tool_use" if has_tools and "tool_use" in templates else "default"
            if name not in templates:
                names = ", ".join(sorted(templates)) or "none at all"
                raise TokenizerError(f"no chat template is the default one; choose with template=, of {names}")
        elif name not in templates:
            return _as_template(name, f"there are: {', '.join(sorted(templates)) or 'none at all'}")
        return checked_text(templates[name], f"the chat template {name!r}")
    if name is not None:
        return _as_template(name, f"this tokenizer has {'no template' if templates is None else 'one without a name'}")
    if templates is None:
        raise TokenizerError(f"this tokenizer has no chat template: {HOW_TO_GIVE_ONE}")
    if isinstance(templates, PathLike):
        return choose_template(given_chat_template(templates), name, has_tools)
    return checked_text(templates, "the chat template")


def _as_template(text: str, known: str) -> str:
    """A text that is not the name of a template.  Without braces it would be the prompt, whatever the messages say."""
    if "{" not in text:
        raise TokenizerError(f"no chat template is named {text!r}; {known}")
    return text


def render_chat(
    source: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Iterable[Any] | None = None,
    documents: Iterable[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    continue_final_message: bool = False,
    variables: Mapping[str, Any] | None = None,
    special: Mapping[str, Any] | None = None,
) -> MarkedText:
    """Render ``source``, with marks that say who wrote what.

    ``special``: the names of the special tokens, by variable, which count as the template's own.  See
    :meth:`constrain.tokenizers.base.Tokenizer.apply_chat_template` for the other arguments.
    """
    # Jinja takes 45 ms to load (measured), and most tokenizers are opened for their vocabulary.
    from constrain.tokenizers.chat.rendering import compiled

    rendering = compiled(source)
    if not isinstance(messages, (list, tuple)) or not messages:
        raise TokenizerError("messages must be a list with at least one message")
    conversation = []
    for i, message in enumerate(messages):
        plain = _plain(message, f"message {i}")
        if not isinstance(plain, dict):
            raise TokenizerError(f"message {i} is {type(message).__name__}, not an object such as {{'role': ...}}")
        conversation.append(_usual_fields(plain))
    for given, what in ((tools, "tools"), (documents, "documents")):
        if isinstance(given, str | bytes | Mapping) or not (given is None or isinstance(given, Iterable)):
            raise TokenizerError(f"{what} must be a list of objects, not {type(given).__name__}")
    tool_list = None if tools is None else [_plain(tool, f"tool {i}") for i, tool in enumerate(tools)]
    if tool_list is not None and not all(isinstance(tool, dict) for tool in tool_list):
        raise TokenizerError("a tool must be an object, with the JSON Schema of its arguments")
    if continue_final_message:
        if add_generation_prompt:
            raise TokenizerError("continue_final_message and add_generation_prompt exclude each other")
        _mark_end(conversation[-1])
    others = {
        **{name: _plain(value, name) for name, value in (variables or {}).items()},
        "tools": tool_list,
        "documents": None if documents is None else [_plain(item, "documents") for item in documents],
    }
    values = {
        **written_by(dict(special or {}), TEMPLATE),
        **{name: written_by(value, TEMPLATE if name.endswith("_token") else CONTENT) for name, value in others.items()},
        "messages": [_with_known_role(written_by(message, CONTENT)) for message in conversation],
        "add_generation_prompt": bool(add_generation_prompt),
    }
    text = rendering.run(values)
    return _cut_at_mark(text) if continue_final_message else text


def _with_known_role(message: dict[str, Any]) -> dict[str, Any]:
    """Some templates make special tokens of roles, as in ``'<|' + role + '|>'``: those of :data:`_ROLES` may be."""
    role = message.get("role")
    return {**message, "role": MarkedText(role, TEMPLATE)} if isinstance(role, str) and role in _ROLES else message


def _plain(value: Any, where: str) -> Any:
    """A copy in plain JSON types, so that a template sees no methods of anything else."""
    try:
        return _plain_value(value, where)
    except RecursionError:
        raise TokenizerError(f"{where} is nested too deeply") from None


def _plain_value(value: Any, where: str) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return {str(key): _plain_value(item, where) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_value(item, where) for item in value]
    if callable(getattr(value, "model_dump", None)):  # a Pydantic model
        return _plain_value(value.model_dump(), where)
    raise TokenizerError(f"{where} holds {type(value).__name__}, which is not JSON")


def _usual_fields(message: dict[str, Any]) -> dict[str, Any]:
    """Fields that are null are left out, and reasoning is there under each name that templates use."""
    message = {key: value for key, value in message.items() if value is not None}
    reasoning = next((message[name] for name in _REASONING if name in message), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _mark_end(message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = content + _CONTINUE
        return
    for block in reversed(content if isinstance(content, list) else []):
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            block["text"] += _CONTINUE
            return
    raise TokenizerError("continue_final_message: the last message has no text to go on from")


def _cut_at_mark(text: MarkedText) -> MarkedText:
    before, found, after = text.rpartition(_CONTINUE.rstrip())
    if not found:
        raise TokenizerError("continue_final_message: the chat template leaves the last message out")
    return before if after.startswith(" ") else before.rstrip()


def _read_text(path: Path) -> str:
    with errors_of(path):
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise TokenizerError(f"not UTF-8 (byte {error.start})") from None
