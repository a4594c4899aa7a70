"""Reads the WordNet database files (``data.noun`` and so on)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")

# Words and usage labels that a demonstration does better without.
_UNWANTED = re.compile(
    r"offensive|disparag|obscen|vulgar|slur|derogat|insult|racis|\bsex|coit|copulat|genital|intercourse|prostitut|"
    r"porn|rape|incest|genocid|\bnazi|hitler|holocaust|suicid|tortur|slave|masturb|penis|vagina|\banus|\banal\b|"
    r"excrement|feces|faeces|urin|nigger|negro|\bjews?\b|jewish|\bfuck|shit|\bcunt|\bcock\b|bitch|whore|\bslut",
    re.IGNORECASE,
)

# Names of taxa are a tenth of the nouns and read like noise.
_TAXON = re.compile(r"(genus|family|order|class|suborder|superfamily|subfamily|phylum|division) [A-Z]")


@dataclass
class Synset:
    """One meaning: the words for it, what it is, and sentences that use it."""

    key: str
    part: str
    topic: int
    words: list[str]
    definition: str
    examples: list[str]
    is_instance: bool
    parent_keys: list[str]
    parents: list[Synset] = field(default_factory=list)
    children: list[Synset] = field(default_factory=list)


def wanted(text: str) -> bool:
    """Whether a text is fit for a demonstration."""
    return _UNWANTED.search(text) is None


def read_wordnet(folder: Path, least: int) -> list[Synset]:
    """The synsets of the database in ``folder``, in file order, that are wanted and use common words alone.

    A small model that has seen fewer words more often speaks better than one that has seen all of
    them once.  A word is common if it occurs in ``least`` definitions or examples; the word that is
    explained may be rarer, and names may be unknown.
    """
    found = [synset for synset in _read_all(folder) if all(map(_is_wanted_word, synset.words))]
    counts: Counter[str] = Counter()
    for synset in found:
        for text in (synset.definition, *synset.examples):
            counts.update(set(words_of(text)))

    def known(text: str, often: int) -> bool:
        return all(max(counts[word], counts[word.lower()]) >= often for word in words_of(text))

    kept = {}
    for synset in found:
        if not synset.is_instance:
            synset.words = [word for word in synset.words if known(word, 3)]
        if synset.words and known(synset.definition, least):
            synset.examples = [text for text in synset.examples if known(text, least // 2)]
            kept[synset.key] = synset
    for synset in kept.values():
        synset.parents = [kept[key] for key in synset.parent_keys if key in kept]
        for parent in synset.parents:
            parent.children.append(synset)
    return list(kept.values())


def _read_all(folder: Path) -> Iterator[Synset]:
    for part in PARTS_OF_SPEECH:
        for line in (folder / f"data.{part}").read_text("utf-8", "replace").splitlines():
            if line[:1].isdigit() and wanted(line.partition("|")[2]):
                yield _parse(line, part)


def _is_wanted_word(word: str) -> bool:
    return wanted(word) and not _TAXON.match(word)


def words_of(text: str) -> list[str]:
    """The words of a text, letters only."""
    return re.findall(r"[A-Za-z][a-z]*", text)


def _parse(line: str, part: str) -> Synset:
    head, _, gloss = line.partition("|")
    fields = head.split()
    count = int(fields[3], 16)
    words = [re.sub(r"\(\w+\)$", "", word).replace("_", " ") for word in fields[4 : 4 + 2 * count : 2]]
    pointers = fields[5 + 2 * count :]
    parents = [pointers[i + 2] + pointers[i + 1] for i in range(0, len(pointers) - 3, 4) if pointers[i] in ("@", "@i")]
    examples = [text.strip(" .;,") for text in re.findall(r'"([^"]+)"', gloss)]
    definition = re.sub(r'"[^"]*"[^;"]*', "", gloss).strip(" ;:.,\t")
    definition = re.sub(r"\s+", " ", re.sub(r"(; ?)+", "; ", definition)).replace("`", "'")
    return Synset(
        key=fields[2].replace("s", "a") + fields[0],
        part=part,
        topic=int(fields[1]),
        words=words,
        definition=definition,
        examples=[re.sub(r"\s+", " ", text).replace("`", "'") for text in examples if len(text) > 8],
        is_instance=any(pointers[i] == "@i" for i in range(0, len(pointers) - 3, 4)),
        parent_keys=parents,
    )
