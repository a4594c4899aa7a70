"""Opens what the native tokenizers do not support of ``tokenizer.json`` with the ``tokenizers`` library, and warns."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

from constrain.errors import TokenizerError
from constrain.extras import how_to_install
from constrain.tokenizers.adapters.hugging_face import HuggingFaceTokenizer, is_of_library
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.special_tokens import find_eos_ids, read_roles

_NOT_SUPPORTED = re.compile(r"\bsupported\b")


class AdapterWarning(UserWarning):
    """A tokenizer is not native: it works, but slower, and only where the other library is installed."""


def adapted_tokenizer_json(path: Path, eos_ids: tuple[int, ...] | None, refusal: TokenizerError) -> Tokenizer:
    """The tokenizer of the file through the ``tokenizers`` library, with a warning that says why.

    Raises :class:`TokenizerError`: ``refusal`` itself if the file is damaged, or if the library cannot read it either;
    ``refusal`` with a reason if the library is not installed, or if the tokens have no exact bytes.
    """
    # An error of a reader has the word "supported" if and only if the file is sound, but asks for what is missing here.
    if not _NOT_SUPPORTED.search(str(refusal)):
        raise refusal
    try:
        import tokenizers
    except ImportError:
        raise TokenizerError(f"{refusal}; the tokenizers library may read it: {how_to_install('tokenizers')}") from None
    try:
        library: Any = tokenizers.Tokenizer.from_file(str(path))
    except BaseException as error:
        raise (refusal if is_of_library(error) else error) from None
    special = [token_id for token_id, token in library.get_added_tokens_decoder().items() if token.special]
    roles = read_roles(path.parent, special, library.token_to_id)
    ends = find_eos_ids(path.parent, roles, library.token_to_id) if eos_ids is None else eos_ids
    try:
        adapted = HuggingFaceTokenizer(library, roles, ends)
    except TokenizerError as error:
        raise TokenizerError(f"{refusal}; and through the tokenizers library: {error}") from None
    warnings.warn(f"{refusal}; using the tokenizers library instead", AdapterWarning, stacklevel=4)
    return adapted
