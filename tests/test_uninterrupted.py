"""An interrupt while numpy is loaded, which no process can load twice, does not spoil the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Ctrl-C comes when an extension module of numpy is half loaded.
CODE = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.exceptions":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

def use():
    {use}

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
import constrain
try:
    use()
except KeyboardInterrupt:
    use()
    import numpy
    print("done" if hasattr(numpy, "matrix") else "half of numpy")
else:
    print("not interrupted")
"""

USES = {
    "a vocabulary": "constrain.Vocabulary([b'a', b'b'], eos_ids=[1])",
    "a regular expression": "constrain.Grammar.from_regex('a')",
    "a schema": "constrain.Grammar.from_json_schema({})",
    "a part of the engine": "from constrain.engine.matcher import Matcher",
    "generation": "from constrain.generation import generate",
    "explanations": "from constrain.explain import read_text",
    "calls of tools": "from constrain.tools import parse",
    "the demo": "import constrain.demo",
    "a backend": "from constrain.backends import CallableBackend",
    "an integration": "from constrain.integrations.follower import Follower",
    "a tokenizer": "from constrain.tokenizers import Tokenizer",
    "a sampler": "from constrain.sampling import Sampler; Sampler(0)",
    "the library of kernels": "from constrain.kernels import library",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_interrupt_while_numpy_is_loaded(use: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(use=use)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
