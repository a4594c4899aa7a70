"""The data's downloads, from servers and folders on this machine: checked, put in place whole, or refused."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench import fetch_data
from bench.fetch_data import SOURCES, Source, Wrong, fetch, is_there, write_list

ENTRIES = {
    "BFCL_java_0": {
        "description": "d",
        "schema": {"type": "object"},
        "tests": [{"valid": True, "data": {"é": 1}, "x": 1}],
    },
    "Handwritten---b": {"schema": True, "tests": []},
    "JME_1": {"schema": {}, "meta": {}},
}
SUITE = {
    "LICENSE": b"MIT",
    "tests/draft7/a.json": b"[]",
    "tests/draft2020-12/optional/b.json": b"[1]",
    "tests/draft3/old.json": b"[]",
    "remotes/r.json": b"{}",
    "bin/x.json": b"{}",
}


def archive(files: dict[str, bytes], top: str = "main") -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as out:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    # Without the time: archives are in the names of tests, which have to be the same in all processes.
    return gzip.compress(raw.getvalue(), mtime=0)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


TOKENIZER = json.dumps({"model": {"vocab": {"Ġa": 1, "!": 0, "Ċ": 2}}}).encode()
RANKS = b"".join(base64.b64encode(token) + f" {rank}\n".encode() for rank, token in enumerate((b"!", b" a", b"\n")))
PLAIN = Source("vocab/plain", "https://example.org/x/plain.bin", sha256(b"plain"))
RANKED = Source("vocab/ranks", "https://example.org/x/ranks-1.tgz", sha256(RANKS), "ranks")
SCHEMAS = replace(SOURCES[0])
TESTS = next(source for source in SOURCES if source.made_by == "suite")


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    (folder / "plain.bin").write_bytes(b"plain")
    (folder / "ranks-1.tgz").write_bytes(archive({"models/tokenizer.json": TOKENIZER}, "package"))
    schemas = {f"maskbench/data/{name}.json": json.dumps(entry, indent=2).encode() for name, entry in ENTRIES.items()}
    schemas |= {"maskbench/data/Other---z.json": b"{}", "data/BFCL_java_0.json": b"{}"}
    (folder / "jsonschemabench.tar.gz").write_bytes(archive(schemas, "jsonschemabench-main"))
    (folder / "JSON-Schema-Test-Suite.tar.gz").write_bytes(archive(SUITE))
    return folder


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    folder = tmp_path / "lists"
    lines = {name: fetch_data.schema_line(name, json.dumps(entry).encode()) for name, entry in ENTRIES.items()}
    order = ("JME_1", "BFCL_java_0", "Handwritten---b")
    write_list("schemas.tsv.gz", {name: fetch_data.short_checksum(lines[name]) for name in order}, folder)
    kept = {name: data for name, data in SUITE.items() if not name.startswith(("bin", "tests/draft3"))}
    write_list("suite.tsv.gz", {name: fetch_data.short_checksum(kept[name]) for name in sorted(kept)}, folder)
    return folder


@pytest.fixture
def server(mirror: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(mirror))) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def test_from_a_server_and_from_a_folder(server: str, mirror: Path, lists: Path, tmp_path: Path) -> None:
    for base in (server, server + "/", mirror.as_uri()):
        folder = tmp_path / sha256(base.encode())
        for source in (PLAIN, RANKED, SCHEMAS, TESTS):
            assert not is_there(source, folder, lists)
            assert fetch(source, folder, base=base, lists=lists) == []
            assert is_there(source, folder, lists)
        assert (folder / "vocab/ranks").read_bytes() == RANKS
        lines = gzip.decompress((folder / fetch_data.SCHEMAS).read_bytes()).decode().splitlines()
        assert [json.loads(line) for line in lines] == [
            {"id": "JME_1", "split": "JME", "schema": {}, "tests": []},
            {
                "id": "BFCL_java_0",
                "split": "BFCL",
                "schema": {"type": "object"},
                "tests": [{"valid": True, "data": {"é": 1}}],
            },
            {"id": "Handwritten---b", "split": "Handwritten", "schema": True, "tests": []},
        ]
        with tarfile.open(folder / fetch_data.SUITE) as suite:
            assert suite.getnames() == [
                "LICENSE",
                "remotes/r.json",
                "tests/draft2020-12/optional/b.json",
                "tests/draft7/a.json",
            ]


def test_what_has_changed_is_named(mirror: Path, lists: Path, tmp_path: Path) -> None:
    names = ["JME_1", "BFCL_java_0", "Handwritten---b"]
    write_list("schemas.tsv.gz", dict.fromkeys(names, "0" * 12), lists)
    assert fetch(SCHEMAS, tmp_path / "data", base=mirror.as_uri(), lists=lists) == names
    assert not is_there(SCHEMAS, tmp_path / "data", lists)
    write_list("suite.tsv.gz", {"tests/draft7/gone.json": "0" * 12}, lists)
    assert "tests/draft7/gone.json" in fetch(TESTS, tmp_path / "data", base=mirror.as_uri(), lists=lists)


@pytest.mark.parametrize(
    ("source", "content", "message"),
    [
        (PLAIN, b"other", "its SHA-256 is .*, and not "),
        (PLAIN, None, "cannot download "),
        (RANKED, b"no archive", "not an archive that can be read"),
        (RANKED, archive({"a": b""}), "no tokenizer.json in the archive"),
        (RANKED, archive({"tokenizer.json": b'{"model": {"vocab": {"\\u4e00": 0}}}'}), "not in the alphabet of bytes"),
        (RANKED, archive({"tokenizer.json": TOKENIZER})[:-30], "not an archive that can be read"),
        (SCHEMAS, archive({"a": b""}), "3 of 3 schemas are not in the archive, such as JME_1"),
        (SCHEMAS, archive({"maskbench/data/JME_1.json": b"[]"}), "not a schema of MaskBench"),
        (TESTS, archive({"a": b""}), "there are no tests in the archive"),
    ],
)
def test_what_is_wrong_is_refused(
    source: Source, content: bytes | None, message: str, mirror: Path, lists: Path, tmp_path: Path
) -> None:
    file = mirror / fetch_data._file_name(source)
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    folder = tmp_path / "data"
    target = folder / source.name
    target.parent.mkdir(parents=True)
    target.write_bytes(b"what was there")
    with pytest.raises(Wrong, match=message) as caught:
        fetch(source, folder, base=mirror.as_uri(), lists=lists)
    assert "\n" not in str(caught.value)
    assert target.read_bytes() == b"what was there"
    assert [path.name for path in target.parent.iterdir() if path.is_file()] == [target.name]


def test_names_in_an_archive_lead_nowhere(mirror: Path, lists: Path, tmp_path: Path) -> None:
    hostile = {"../../tests/draft7/evil.json": b"[]", "tests/draft7/a.json": b"[]"}
    (mirror / "JSON-Schema-Test-Suite.tar.gz").write_bytes(archive(hostile))
    fetch(TESTS, tmp_path / "data", base=mirror.as_uri(), lists=lists)
    assert not list(tmp_path.rglob("evil.json"))


def test_the_command(mirror: Path, lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_data, "SOURCES", (PLAIN, replace(RANKED, sha256="0" * 64)))
    arguments = [str(tmp_path / "data"), "--base", mirror.as_uri()]
    for said in ("vocab/plain: fetched", "vocab/plain: there"):
        done = CliRunner().invoke(fetch_data.main, arguments)
        assert done.exit_code == 1
        assert said in done.output
        assert "vocab/ranks: its SHA-256 is" in done.output
    monkeypatch.setattr(fetch_data, "SOURCES", (PLAIN, RANKED))
    done = CliRunner().invoke(fetch_data.main, arguments)
    assert (done.exit_code, "CONSTRAIN_TEST_DATA" in done.output) == (0, True)


def test_changed_parts_are_taken_if_told(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The repository's own lists, and an archive that has none of their files as they were."""
    monkeypatch.setattr(fetch_data, "SOURCES", (TESTS,))
    arguments = [str(tmp_path / "data"), "--base", mirror.as_uri()]
    done = CliRunner().invoke(fetch_data.main, arguments)
    assert done.exit_code == 1
    assert "are not those that the figures were made with" in done.output
    assert not (tmp_path / "data" / fetch_data.SUITE).exists()
    done = CliRunner().invoke(fetch_data.main, [*arguments, "--accept-changes"])
    assert (done.exit_code, "parts have changed" in done.output) == (0, True)


def test_sources() -> None:
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    for source in SOURCES:
        assert source.url.startswith("https://")
        assert source.sha256 or source.made_by in ("schemas", "suite")
        assert not source.sha256 or len(source.sha256) == 64
    assert len(fetch_data.read_list("schemas.tsv.gz")) == 4514
    assert len(fetch_data.read_list("suite.tsv.gz")) > 300


def test_what_is_there_is_what_the_lists_say() -> None:
    from bench.maskbench.schemas import NoData, data_folder

    try:
        folder = data_folder()
    except NoData as error:
        pytest.skip(str(error))
    assert [source.name for source in SOURCES if not is_there(source, folder)] == []
