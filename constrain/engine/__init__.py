"""The engine: what may come next, as masks over a vocabulary, for the grammars of :mod:`constrain.grammar.ir`."""

from constrain.uninterrupted import load_numpy

load_numpy()
