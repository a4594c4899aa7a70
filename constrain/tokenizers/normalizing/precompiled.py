"""The normalizer ``Precompiled`` of ``tokenizer.json``: SentencePiece's rules, applied as Hugging Face's library does.

That library goes by grapheme clusters (UAX 29), and models were trained with the result.  In a cluster of up to five
bytes, the *shortest* rule that fits the beginning replaces the whole cluster, so a letter may lose marks.  Where no
rule fits, and in longer clusters, the same is tried with each character.  SentencePiece itself
(:mod:`constrain.tokenizers.normalizing.charsmap`) goes by bytes and takes the longest rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.normalizing.charsmap import Charsmap, SpaceOptions
from constrain.tokenizers.normalizing.normal_forms import Spans
from constrain.tokenizers.normalizing.text_steps import TextStep
from constrain.tokenizers.splitting.unicode_older import codes_of_ranges
from constrain.unicode_categories import CATEGORIES, category_table

_LONGEST_CLUSTER = 5
"""Bytes of UTF-8."""

_REMEMBERED = 1 << 16

# Extenders that are no marks (or came with Unicode 17), and marks that begin a cluster of their own.
_MORE_EXTENDERS = (
    "E33 EB3 1ACF-1ADD 1AE0-1AEB 200C-200D FF9E-FF9F 10EFA-10EFB 11B60-11B67 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5 "
    "1F3FB-1F3FF E0020-E007F"
)
_NO_EXTENDERS = "102B-102C 1038 1062-1064 1067-106D 1083 1087-108C 108F 109A-109C 1A61 1A63-1A64 AA7B AA7D 11720-11721"
# What belongs to the character behind it (Grapheme_Cluster_Break=Prepend).
_PREPENDED = "600-605 6DD 70F 890-891 8E2 D4E 110BD 110CD 111C2-111C3 113D1 1193F 11941 11A84-11A89 11D46 11F02"
# Two parts of one Hangul syllable.
_SYLLABLE = re.compile(
    "[\u1100-\u115f\ua960-\ua97c][\u1100-\u11a7\ua960-\ua97c\uac00-\ud7c6]"
    "|[\u1160-\u11a7\ud7b0-\ud7c6\uac00-\ud7a3][\u1160-\u11ff\ud7b0-\ud7fb]"
    "|[\u11a8-\u11ff\ud7cb-\ud7fb][\u11a8-\u11ff\ud7cb-\ud7fb]"
)


class Precompiled(TextStep):
    """The rules of ``precompiled_charsmap``, cluster by cluster.

    Raises :class:`TokenizerError` if the rules are cut off; damage that shows only in use is found then.
    """

    def __init__(self, compiled: bytes) -> None:
        self._compiled = compiled
        _, rules, blob, _ = Charsmap(compiled, SpaceOptions(False, False, False)).tables()
        self._rules: list[int] = rules.tolist()
        self._blob: bytes = blob.tobytes()
        self._known = _Known(self._of_cluster)
        touched = _class_of(_characters_with_rules(rules))
        self._touched = re.compile(f"[{touched}]") if touched else re.compile("(?!)")

    def apply(self, text: str, first: bool) -> str:
        known, parts, place = self._known, [], 0

        def change(match: re.Match[str]) -> str:
            return known[match[0]]

        for begin, end in _clusters(text):
            parts += [self._touched.sub(change, text[place:begin]), known[text[begin:end]]]
            place = end
        parts.append(self._touched.sub(change, text[place:] if place else text))
        return "".join(parts)

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        parts: list[str] = []
        spans: Spans = []
        place = 0
        for begin, end in [*_clusters(text), (len(text), len(text))]:
            for i in range(place, begin):
                parts.append(self._known[text[i]])
                spans += [(i, i + 1)] * len(parts[-1])
            parts.append(self._known[text[begin:end]])
            spans += [(begin, end)] * len(parts[-1])
            place = end
        return "".join(parts), spans

    def _of_cluster(self, cluster: str) -> str:
        if len(cluster.encode()) <= _LONGEST_CLUSTER:
            whole = self._shortest(cluster)
            if whole is not None:
                return whole
        return "".join(char if (new := self._shortest(char)) is None else new for char in cluster)

    def _shortest(self, text: str) -> str | None:
        """What the shortest rule for the beginning of ``text`` makes of it; for the format see charsmap_kernels.py."""
        rules = self._rules
        unit = rules[0]
        node = (unit >> 10) << ((unit & 0x200) >> 6)
        for byte in text.encode():
            node ^= byte
            if node >= len(rules):
                raise TokenizerError("precompiled_charsmap is damaged: its rules lead nowhere")
            unit = rules[node]
            if unit & 0x800000FF != byte:
                return None
            node ^= (unit >> 10) << ((unit & 0x200) >> 6)
            if unit >> 8 & 1:
                begin = rules[node] & 0x7FFFFFFF if node < len(rules) else len(self._blob)
                end = self._blob.find(b"\0", begin)
                if end < 0 or (self._blob[begin] & 0xC0) == 0x80:
                    raise TokenizerError("precompiled_charsmap is damaged: its rules lead nowhere")
                return self._blob[begin:end].decode()
        return None

    def __reduce__(self) -> tuple[type[Precompiled], tuple[bytes]]:
        return Precompiled, (self._compiled,)


class _Known(dict[str, str]):
    """What clusters become."""

    def __init__(self, find: Callable[[str], str]) -> None:
        self._find = find

    def __missing__(self, cluster: str) -> str:
        # A text can be made that has a new cluster everywhere, so the number that is remembered is bounded.
        if len(self) >= _REMEMBERED:
            self.clear()
        result = self[cluster] = self._find(cluster)
        return result


def _characters_with_rules(rules: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """bool[0x110000]: the characters for which, alone, there is a rule.  All walk through the trie at once."""
    units = rules.astype(np.int64)
    codes = np.arange(0x110000)
    found = np.zeros(0x110000, dtype=np.bool_)
    for low, high, shifts in (
        (0, 0x80, (0,)),
        (0x80, 0x800, (6, 0)),
        (0x800, 0x10000, (12, 6, 0)),
        (0x10000, 0x110000, (18, 12, 6, 0)),
    ):
        here = codes[low:high]
        lead = (0, 0xC0, 0xE0, 0xF0)[len(shifts) - 1]
        unit = np.full(len(here), units[0])
        node = np.zeros(len(here), dtype=np.int64)
        alive = np.ones(len(here), dtype=np.bool_)
        for shift in shifts:
            byte = lead | here >> shift if shift == shifts[0] else 0x80 | here >> shift & 0x3F
            node ^= (unit >> 10) << ((unit & 0x200) >> 6) ^ byte
            # A path out of the table counts as a rule: the damage is reported when a text has that character.
            found[low:high] |= alive & (node >= len(units))
            alive &= node < len(units)
            unit = units[np.where(alive, node, 0)]
            alive &= unit & 0x800000FF == byte
            found[low:high] |= alive & (unit >> 8 & 1 == 1)
    found[0xD800:0xE000] = False
    return found


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Where the clusters of several characters are, without those that are longer than a rule can be."""
    clusters, controls = _clusters_and_controls()
    for match in clusters.finditer(text):
        begin, end = match.span()
        if match[1] is not None and begin > 0 and text[begin - 1] not in controls:
            begin -= 1
            # A syllable of several parts has too many bytes.
            if begin > 0 and _SYLLABLE.fullmatch(text, begin - 1, begin + 1):
                continue
        if end - begin > 1:
            yield begin, end


@lru_cache(maxsize=1)
def _clusters_and_controls() -> tuple[re.Pattern[str], frozenset[str]]:
    """A regex for clusters, or (its group) for what goes on with one, and the characters that end one."""
    table = category_table()
    extends = np.isin(table, [CATEGORIES.index(name) for name in ("Mn", "Mc", "Me")])
    extends[codes_of_ranges(_NO_EXTENDERS)] = False
    extends[codes_of_ranges(_MORE_EXTENDERS)] = True
    prepended = np.zeros(len(table), dtype=np.bool_)
    prepended[codes_of_ranges(_PREPENDED)] = True
    controls = np.isin(table, [CATEGORIES.index(name) for name in ("Cc", "Zl", "Zp", "Cf")]) & ~extends & ~prepended
    more = f"[{_class_of(extends)}]"
    return (
        re.compile(f"\r\n|[{_class_of(prepended)}]+[^{_class_of(controls)}]?{more}*|({more}+)"),
        frozenset(map(chr, np.flatnonzero(controls).tolist())),
    )


def _class_of(members: npt.NDArray[np.bool_]) -> str:
    """The inside of a regex class."""
    edges = np.flatnonzero(np.diff(members.astype(np.int8), prepend=0, append=0)).tolist()
    return "".join(
        f"{re.escape(chr(begin))}-{re.escape(chr(end - 1))}" for begin, end in zip(edges[::2], edges[1::2], strict=True)
    )
