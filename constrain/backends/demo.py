"""The model that comes with the package: no download, no sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constrain import demo
from constrain.backends.base import Backend
from constrain.backends.options import BackendOptions, refuse


class DemoBackend(Backend):
    """The embedded n-gram model.  It looks at the last four tokens, so it has no cache and no limit.

    Raises
    ------
    ConstrainError
        An option is set: it has none of them.
    """

    name = "demo"

    def __init__(self, options: BackendOptions | None = None) -> None:
        refuse(self.name, options or BackendOptions())
        self.tokenizer, self._model = demo.load()
        self.vocab_size = self._model.vocab_size

    def logits(self, ids: Sequence[int]) -> Any:
        return self._model.logits(ids)
