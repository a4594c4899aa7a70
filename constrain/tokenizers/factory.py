"""Opens a tokenizer whatever its file is, by looking at the first bytes or at the files in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers import metrics
from constrain.tokenizers.adapters import adapt, has_adapter
from constrain.tokenizers.arguments import checked_ids, checked_path, checked_text
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.chat.templates import ChatTemplates, given_chat_template, read_chat_template
from constrain.tokenizers.formats.rank_encodings import ENCODINGS, RankEncoding
from constrain.tokenizers.hub import folder_of_hub_id, is_hub_id
from constrain.tokenizers.load_cache import loaded_through_cache
from constrain.tokenizers.model_names import MODEL_ENCODINGS, encoding_of_name, find_rank_file

SUPPORTED = "tokenizer.json, GGUF, SentencePiece .model, .tiktoken rank files, or a folder with one of them"

_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} +[0-9]+\r?(\n|$)")


def load_tokenizer(
    path: str | PathLike[str] | Any,
    chat_template: ChatTemplates | PathLike[str] | None = None,
    *,
    encoding: str | RankEncoding | None = None,
    eos_ids: Iterable[int] | None = None,
    folder: str | PathLike[str] | None = None,
    download: bool = False,
    revision: str | None = None,
    cache: bool = True,
) -> Tokenizer:
    """Open a tokenizer file or a model folder, find one by name, or take one of another library.

    Parameters
    ----------
    path : path, name or tokenizer
        A ``tokenizer.json``, a GGUF file, a SentencePiece ``.model``, a ``.tiktoken`` rank file, or a folder with one
        of them.  Where there is no such file: the name of a model or encoding
        (:data:`constrain.tokenizers.model_names.MODEL_ENCODINGS`), or the id of a repository on the Hugging Face Hub.
        Or a tokenizer of another library that has been loaded, such as ``AutoTokenizer.from_pretrained`` returns
        (:func:`constrain.tokenizers.adapters.adapt`).
    chat_template : str, path or mapping of str to str, optional
        A Jinja template, the path of a file or folder with one, or several templates by name, instead of the one that
        is beside the file.
    encoding : str or RankEncoding, optional
        For a rank file whose name does not tell: its encoding, such as ``"cl100k_base"``, or a new one.
    eos_ids : ids, optional
        The tokens that end a generation, where the files do not say or say it wrongly.
    folder : path, optional
        For a name: where its rank file is, if not in the caches of tiktoken and Hugging Face.
    download : bool
        For the id of a repository: fetch it, if it is not in the cache.  For the name of a model or an encoding: fetch
        OpenAI's rank file, and check its SHA-256.
    revision : str, optional
        For the id of a repository: a branch, tag or commit.
    cache : bool
        Take the tokenizer from the cache on disk if the file, by its hash, was loaded before, and keep it there if not
        (:mod:`constrain.tokenizers.load_cache`).

    Raises :class:`TokenizerError` with the path if there is no such file, if its format is not
    supported, or if it makes no sense.
    """
    if has_adapter(path):
        given = {"encoding": encoding, "folder": folder, "download": download or None, "revision": revision}
        return _adapted(path, chat_template, eos_ids, [name for name, value in given.items() if value is not None])
    place = checked_path(path)
    if folder is not None:
        checked_path(folder, "folder=")
    if encoding is not None and not isinstance(encoding, str | RankEncoding):
        raise TokenizerError(f"encoding= must be a name or a RankEncoding, not {type(encoding).__name__}")
    if revision is not None:
        checked_text(revision, "revision=")
    with metrics.loading() as loaded:
        if not place.exists():
            place, encoding = _find_by_name(fspath(path), encoding, folder, download, revision)
        elif folder is not None or download or revision is not None:
            raise TokenizerError(f"{place}: folder=, download= and revision= are for names, and this file is there")
        if place.is_dir():
            place = _file_in_folder(place)
        if not place.is_file():
            raise TokenizerError(f"{place}: a pipe or a device; a tokenizer is read in several goes, from a file")
        tokenizer = _load(place, encoding, eos_ids, cache)
        if chat_template is not None:
            tokenizer.chat_template = given_chat_template(chat_template)
        elif tokenizer.chat_template is None:
            tokenizer.chat_template = read_chat_template(place.parent)
        loaded(tokenizer, place.suffix.removeprefix("."))
    return tokenizer


def _adapted(
    library_tokenizer: Any,
    chat_template: ChatTemplates | PathLike[str] | None,
    eos_ids: Iterable[int] | None,
    given: list[str],
) -> Tokenizer:
    """The adapter of a tokenizer of another library; one of this library is what it is."""
    name = type(library_tokenizer).__name__
    if given:
        raise TokenizerError(f"{given[0]}= is for files and names, and this is a {name}")
    if isinstance(library_tokenizer, Tokenizer):
        if chat_template is not None or eos_ids is not None:
            raise TokenizerError(f"this {name} is loaded already: give chat_template= and eos_ids= where it is")
        return library_tokenizer
    with metrics.loading() as loaded:
        tokenizer = adapt(library_tokenizer)
        if eos_ids is not None:
            ends = tuple(sorted(set(checked_ids(eos_ids))))
            if wrong := [token_id for token_id in ends if not 0 <= token_id < tokenizer.vocab_size]:
                raise TokenizerError(
                    f"eos_ids={wrong[0]} is out of range, the tokenizer has {tokenizer.vocab_size} tokens"
                )
            tokenizer.eos_ids = ends
        if chat_template is not None:
            tokenizer.chat_template = given_chat_template(chat_template)
        loaded(tokenizer, type(library_tokenizer).__module__.partition(".")[0])
    return tokenizer


def _find_by_name(
    name: str,
    encoding: str | RankEncoding | None,
    folder: str | PathLike[str] | None,
    download: bool,
    revision: str | None,
) -> tuple[Path, str | RankEncoding | None]:
    """The file or folder that a name stands for, and its encoding."""
    found = encoding_of_name(name)
    if found is not None:
        if revision is not None:
            raise TokenizerError(f"{name}: revision= is for repositories; a rank file has none")
        file = find_rank_file(found, None if folder is None else Path(fspath(folder)), download)
        return file, found if encoding is None else encoding
    if folder is not None:
        raise TokenizerError(
            f"{name}: neither a model nor an encoding; known: {', '.join((*ENCODINGS, *MODEL_ENCODINGS))}"
        )
    if is_hub_id(name):
        return folder_of_hub_id(name, download, revision), encoding
    raise TokenizerError(f"{name}: no such file, and no name of a model, of an encoding or of a repository")


def _load(place: Path, encoding: str | RankEncoding | None, eos_ids: Iterable[int] | None, cache: bool) -> Tokenizer:
    ends = None if eos_ids is None else tuple(sorted(set(checked_ids(eos_ids))))
    if not cache:
        return _read(place, encoding, ends)
    return loaded_through_cache(place, (encoding, ends), lambda: _read(place, encoding, ends))


def _read(place: Path, encoding: str | RankEncoding | None, ends: tuple[int, ...] | None) -> Tokenizer:
    # All readers together take as long to load as a whole tokenizer from the cache (30 ms, measured).
    head = _first_bytes(place)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        if encoding is not None:
            raise TokenizerError(f"{place}: encoding= is for rank files; a tokenizer.json has its own")
        from constrain.tokenizers.formats.tokenizer_json import load_tokenizer_json

        try:
            return load_tokenizer_json(place, ends)
        except TokenizerError as refusal:
            from constrain.tokenizers.adapters.in_place_of_native import adapted_tokenizer_json

            return adapted_tokenizer_json(place, ends, refusal)
    if _RANK_LINE.match(head):
        from constrain.tokenizers.formats.tiktoken_file import load_tiktoken_file

        return load_tiktoken_file(place, encoding, ends)
    if head.startswith(b"GGUF"):
        from constrain.tokenizers.formats.gguf_file import load_gguf_file

        return load_gguf_file(place, ends)
    if _is_sentencepiece(head):
        from constrain.tokenizers.formats.sentencepiece_file import load_sentencepiece_file

        return load_sentencepiece_file(place, ends)
    raise TokenizerError(f"{place}: {_name_of_format(head)} is not supported; supported: {SUPPORTED}")


def _file_in_folder(folder: Path) -> Path:
    """The first kind that is there; of rank files, models and GGUF files there must be one only."""
    if (folder / "tokenizer.json").is_file():
        return folder / "tokenizer.json"
    for suffix in ("tiktoken", "model", "gguf"):
        files = sorted(folder.glob(f"*.{suffix}"))
        if suffix == "model" and (folder / "tokenizer.model").is_file():
            return folder / "tokenizer.model"
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise TokenizerError(f"{folder}: several .{suffix} files ({names}); give the path of one")
        if files:
            return files[0]
    raise TokenizerError(f"{folder}: no tokenizer in this folder; supported: {SUPPORTED}")


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except FileNotFoundError:
        raise TokenizerError(f"{path}: no such file") from None
    except OSError as error:
        raise TokenizerError(f"{path}: {error.strerror}") from None


def _name_of_format(head: bytes) -> str:
    if not head:
        return "an empty file"
    if head.startswith(b"\x1f\x8b"):
        return "a gzip file (unpack it first)"
    return "this format"


def _is_sentencepiece(head: bytes) -> bool:
    """Such a file begins with a message field 1 that holds a string field 1."""
    return head[:1] == b"\x0a" and b"\x0a" in head[2:5]
