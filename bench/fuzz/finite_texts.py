"""Languages of finitely many texts, all of them listed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class Texts:
    """A finite language."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.all = frozenset(texts)
        self.sorted = sorted(self.all)
        self._longest = max(map(len, self.all), default=0)

    def is_viable(self, prefix: bytes) -> bool:
        """Whether some text begins like that."""
        place = bisect_left(self.sorted, prefix)
        return place < len(self.sorted) and self.sorted[place].startswith(prefix)

    def following(self, prefix: bytes) -> set[int]:
        """The bytes that may follow a beginning of texts."""
        found = set()
        place = bisect_left(self.sorted, prefix)
        while place < len(self.sorted) and self.sorted[place].startswith(prefix):
            if len(self.sorted[place]) == len(prefix):
                place += 1
                continue
            byte = self.sorted[place][len(prefix)]
            found.add(byte)
            place = len(self.sorted) if byte == 255 else bisect_left(self.sorted, prefix + bytes([byte + 1]))
        return found

    def heads(self, text: bytes) -> list[int]:
        """The lengths of all texts that ``text`` begins with."""
        return [size for size in range(min(len(text), self._longest) + 1) if text[:size] in self.all]
