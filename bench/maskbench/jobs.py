"""What a worker is asked to do, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Kind(str, Enum):
    """The notation of a job's grammar."""

    JSON_SCHEMA = "json_schema"
    LARK = "lark"
    REGEX = "regex"
    GBNF = "gbnf"


class Status(str, Enum):
    """How a job ended."""

    MEASURED = "measured"
    COMPILE_ERROR = "compile error"
    TIMEOUT = "timeout"
    CRASH = "crash"


@dataclass(frozen=True)
class Instance:
    """A text as tokens, and whether the grammar should accept it."""

    tokens: list[int]
    valid: bool


@dataclass(frozen=True)
class Job:
    """One grammar and the texts that are run through it."""

    id: str
    kind: Kind
    grammar: str
    instances: list[Instance]


@dataclass(frozen=True)
class Run:
    """One instance run through one engine.

    Attributes
    ----------
    steps : int64[n]
        Nanoseconds of each mask + look-up + accept, the rejected one included.
    interrupted : bool[n]
        Whether a slow step (see :data:`bench.maskbench.worker.SLOW`) seems slow because the system
        gave the processor to something else meanwhile; all false where the system does not tell.
    first : bool[n] or None
        Whether the step asked for a mask that this grammar had not computed before; None where the
        engine does not say.
    accepted : bool
        Every token was allowed and the text could end there.
    error : str
        What was raised on the way, if anything; the instance then counts as rejected.
    """

    steps: Nanoseconds
    interrupted: Flags
    first: Flags | None
    accepted: bool
    error: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one engine made of one job.

    Attributes
    ----------
    compile : int
        Nanoseconds from the grammar's text to the first mask; -1 if there was none.
    peak_memory : int
        Bytes: the most the worker had resident until now; 0 where it is not known.
    """

    status: Status
    compile: int = -1
    runs: list[Run] = field(default_factory=list)
    message: str = ""
    peak_memory: int = 0


@dataclass(frozen=True)
class Ready:
    """A worker's first message.

    Attributes
    ----------
    version : str
        Of the engine's package.
    imported, loaded : int
        Bytes resident after the imports, and after the vocabulary has been loaded as well.
    load_seconds : float
        From the start of the imports to readiness, with small grammars to warm up.
    overhead : float
        Nanoseconds in every step that are the benchmark's own.
    error : str
        Why it is not ready, if it is not.
    """

    version: str = ""
    imported: int = 0
    loaded: int = 0
    load_seconds: float = 0.0
    overhead: float = 0.0
    error: str = ""
