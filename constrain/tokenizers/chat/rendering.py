"""Compiles chat templates and runs them in the sandbox; whatever Jinja raises becomes an error of this package.

Jinja is imported by this file, sandbox.py and marked_filters.py, and by no other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jinja2

from constrain.errors import LimitError, TokenizerError
from constrain.tokenizers.chat.marked_text import MarkedText
from constrain.tokenizers.chat.sandbox import TemplateSandbox

_LONGEST_TEMPLATE = 2**18


class CompiledTemplate:
    """A chat template, ready to run.  Threads may share one.

    Raises :class:`TokenizerError` if ``source`` is no template, :class:`LimitError` if it is too long or too deep.
    """

    def __init__(self, source: str) -> None:
        if len(source) > _LONGEST_TEMPLATE:
            raise LimitError(
                f"the chat template has {len(source)} characters; at most {_LONGEST_TEMPLATE} are supported"
            )
        self._sandbox = TemplateSandbox()
        try:
            self._template = self._sandbox.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise TokenizerError(f"chat template, line {error.lineno}: {error.message}") from None
        except (RecursionError, MemoryError):
            raise LimitError("the chat template is nested too deeply") from None
        except Exception as error:  # the template becomes Python code, which can be wrong in ways of its own
            raise TokenizerError(f"the chat template cannot be compiled: {error}") from None

    def run(self, values: dict[str, Any]) -> MarkedText:
        """The text.  ``values``: the variables of the template by name, JSON whose strings have marks.

        Raises :class:`TokenizerError` if the template fails or refuses the values, :class:`LimitError` if it wants too
        much time or memory.
        """
        try:
            return self._sandbox.run(self._template, values)
        except LimitError:
            raise
        except (RecursionError, MemoryError):
            raise LimitError("the chat template calls itself too deeply or needs too much memory") from None
        except jinja2.TemplateError as error:
            raise TokenizerError(f"the chat template says: {' '.join(str(error).split())}") from None
        except Exception as error:  # a template can raise anything that Python's operators raise
            reason = " ".join(str(error).split())
            raise TokenizerError(f"the chat template fails: {type(error).__name__}: {reason}") from None


@lru_cache(maxsize=32)
def compiled(source: str) -> CompiledTemplate:
    """The template with this source; the last 32 are kept."""
    return CompiledTemplate(source)
