"""A vLLM server in a process of its own, on a free port, until the block is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

NAME = "tiny"
START_SECONDS = 600.0

TOOL_OPTIONS = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
"""What a server that takes tools is started with."""

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
"""A small cache of keys and values, and all in one process, so that a start takes half a minute."""


class ServerError(RuntimeError):
    """The server did not start."""


@contextmanager
def vllm_server(
    model: Path, log: Path, *, options: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The address of a server, ``http://.../v1``; ``log`` has what it prints.

    Raises
    ------
    ServerError
        If it ends before it answers, or does not answer within ten minutes.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model.resolve())]
    command += ["--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    command += ["--dtype", "float32", "--max-model-len", "1024", "--max-num-seqs", "16", *options]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            # Not in a checkout: the package that is installed is what is served.
            cwd=log.parent,
            env={**os.environ, **ENVIRONMENT, **(environment or {})},
            start_new_session=True,
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        # The server has processes of its own; the group is only theirs.
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, end)
                process.wait(20)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise ServerError(f"vLLM ended with {process.returncode}:\n{_tail(log)}")
        try:
            with urllib.request.urlopen(address, timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise ServerError(f"vLLM did not answer in {START_SECONDS:.0f} s:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-30:])
