"""Stand-ins for the benchmark's engine processes: what a job's grammar says is what they do."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection
from pathlib import Path

from bench.maskbench.jobs import Outcome, Ready, Status


def obedient(connection: Connection, name: str, vocabulary: Path) -> None:
    """Answer; or hang, or die, where the grammar is that word.  The message tells one process from another."""
    connection.send(Ready(version="1"))
    while True:
        try:
            job, _ = connection.recv()
        except EOFError:
            return
        if job.grammar == "hang":
            time.sleep(60)
        if job.grammar == "die":
            os._exit(7)
        if job.grammar == "linger":
            time.sleep(0.2)
        connection.send(Outcome(Status.MEASURED, compile=1000, message=str(os.getpid())))


def stillborn(connection: Connection, name: str, vocabulary: Path) -> None:
    """End without being ready."""
    os._exit(3)


def refusing(connection: Connection, name: str, vocabulary: Path) -> None:
    """Say why it cannot start."""
    connection.send(Ready(error="no such engine"))


def mute(connection: Connection, name: str, vocabulary: Path) -> None:
    """Be ready, and answer nothing."""
    connection.send(Ready(version="1"))
    time.sleep(60)
