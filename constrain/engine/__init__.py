"""The engine: automata, lexer, Earley rows, recognizer, trie, mask walk, compiler, matcher."""

from constrain.kernel_cache import drop_stale_kernels

drop_stale_kernels(__path__[0])
