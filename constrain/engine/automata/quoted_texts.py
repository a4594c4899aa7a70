"""The texts that the lexemes of a grammar quote from, as the tables of quotations.py hold them."""

from __future__ import annotations

import numpy as np

from constrain.engine.automata.quotations import END
from constrain.engine.automata.suffix_order import Bytes, Places, suffix_order
from constrain.engine.storage.schemas import QUOTED_BYTES, QUOTED_CUTS, QUOTED_ORDER
from constrain.engine.storage.tables import Tables
from constrain.grammar.languages.quotation import Quotation


class QuotedTexts:
    """Texts, each once, one behind the other."""

    def __init__(self) -> None:
        self._ranges: dict[tuple[bytes, bytes], tuple[int, int, int]] = {}
        self._texts: list[Bytes] = []
        self._cuts: list[Bytes] = []
        self._orders: list[Places] = []
        self._places = 0
        self._pieces = 0

    def copy(self) -> QuotedTexts:
        """Texts that can be added to on their own."""
        other = QuotedTexts()
        other._ranges = self._ranges.copy()
        other._texts, other._cuts, other._orders = self._texts[:], self._cuts[:], self._orders[:]
        other._places, other._pieces = self._places, self._pieces
        return other

    def add(self, quotation: Quotation) -> tuple[int, int, int]:
        """The range of QUOTED_ORDER that stands for all pieces of a text, and where the text begins in QUOTED_BYTES."""
        key = quotation.text, quotation.cuts
        known = self._ranges.get(key)
        if known is not None:
            return known
        text = np.frombuffer(quotation.text + b"\0", np.uint8)
        cuts = np.frombuffer(quotation.cuts + bytes((END,)), np.uint8)
        order = suffix_order(text[:-1])
        order = order[cuts[order] != 0]
        order += np.int32(self._places)
        self._texts.append(text)
        self._cuts.append(cuts)
        self._orders.append(order)
        found = self._ranges[key] = self._pieces, self._pieces + len(order), self._places
        self._places += len(text)
        self._pieces += len(order)
        return found

    def append_to(self, tables: Tables) -> None:
        """Have in the tables what is not there yet; each table is looked at by itself, as each may be full."""
        for slot, arrays in (
            (QUOTED_BYTES, self._texts),
            (QUOTED_CUTS, self._cuts),
            (QUOTED_ORDER, self._orders),
        ):
            begin = 0
            for array in arrays:
                if begin >= tables.used(slot):
                    tables.append(slot, array)
                begin += len(array)
