"""Which special token has which role: as the files beside a tokenizer say, or by well-known names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.json_files import read_json

WELL_KNOWN_EOS = ("<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "</s>")
"""Names that end a text, for vocabularies whose files do not say."""

_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


@dataclass(frozen=True)
class SpecialTokens:
    """The ids of the tokens that do not stand for text, by role; ``None`` if there is no such token.

    ``additional`` holds the special tokens without a role, in order of id.
    """

    bos: int | None = None
    eos: int | None = None
    unk: int | None = None
    sep: int | None = None
    pad: int | None = None
    cls: int | None = None
    mask: int | None = None
    additional: tuple[int, ...] = ()

    def roles(self) -> dict[str, int]:
        """The roles that are taken, as ``{"bos": id, ...}``."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "additional"}
        return {role: token_id for role, token_id in named.items() if token_id is not None}


def read_roles(folder: Path | None, special_ids: Iterable[int], to_id: Callable[[str], int | None]) -> SpecialTokens:
    """Roles as ``tokenizer_config.json`` in ``folder`` names them; the other special tokens are additional."""
    roles: dict[str, int] = {}
    if folder is not None and (folder / "tokenizer_config.json").is_file():
        config = read_json(folder / "tokenizer_config.json")
        for role in _ROLES:
            name = _content(config.get(f"{role}_token"))
            token_id = to_id(name) if name else None
            if token_id is not None:
                roles[role] = token_id
    return SpecialTokens(additional=tuple(sorted(set(special_ids) - set(roles.values()))), **roles)


def find_eos_ids(folder: Path | None, roles: SpecialTokens, to_id: Callable[[str], int | None]) -> tuple[int, ...]:
    """The ids that end a generation.

    They are those of ``generation_config.json`` (one id or a list) and the ``eos_token`` of ``tokenizer_config.json``
    together.  If neither names one, ``config.json`` counts, and if that names none, every token with a
    well-known name.
    """
    ids: set[int] = set()
    if folder is not None:
        ids.update(_eos_of(folder / "generation_config.json"))
    if roles.eos is not None:
        ids.add(roles.eos)
    if not ids and folder is not None:
        ids.update(_eos_of(folder / "config.json"))
    if not ids:
        ids.update(token_id for token_id in map(to_id, WELL_KNOWN_EOS) if token_id is not None)
    return tuple(sorted(ids))


def _eos_of(path: Path) -> list[int]:
    if not path.is_file():
        return []
    value = read_json(path).get("eos_token_id")
    values = value if isinstance(value, list) else [value]
    found = [item for item in values if item is not None]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in found):
        raise TokenizerError(f"{path}: eos_token_id must be an id or a list of ids")
    return found


def _content(token: Any) -> str | None:
    """A token in a configuration is a string or an object with its ``content``."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None
