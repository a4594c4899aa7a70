"""Running English for training: sentences made from WordNet's glosses, and the Jargon File."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tools.demo_model.wordnet import Synset, wanted, words_of

_ARTICLES = ("a ", "an ", "the ", "any ", "one ", "some ", "someone ", "something ", "each ", "either ", "all ", "two ")
_COUNTABLE = (5, 6, 18, 20)
"""Lexicographer files whose nouns are things that come in ones: animals, artifacts, people, plants."""


def capitalized(text: str) -> str:
    """With an upper-case first letter."""
    return text[:1].upper() + text[1:]


def without_domain(definition: str) -> str:
    """A definition without a leading ``(field of knowledge)``."""
    return re.sub(r"^(\([^)]*\) ?)+", "", definition)


def with_article(word: str) -> str:
    """``a`` or ``an`` before a common noun; names and plurals as they are."""
    if word[:1].isupper() or word.endswith("s"):
        return word
    return ("an " if word[0] in "aeiou" else "a ") + word


def sentence(text: str) -> str:
    """Capital letter in front, full stop at the end."""
    text = capitalized(text.strip())
    return text if text.endswith((".", "!", "?")) else text + "."


def definition_sentence(synset: Synset, rng: Random) -> str:
    """A sentence that defines the first word of a synset."""
    word = synset.words[0]
    meaning = without_domain(synset.definition).split(";")[0]
    if synset.part == "noun":
        verb = "was" if re.search(r"\(.*\d{3,4}-\d{3,4}\)", meaning) else "is"
        if (synset.is_instance or synset.topic in _COUNTABLE) and not meaning.startswith(_ARTICLES):
            meaning = ("an " if meaning[:1].lower() in "aeiou" else "a ") + meaning
        return sentence(f"{with_article(word)} {verb} {meaning}")
    if synset.part == "verb":
        return sentence(rng.choice((f"to {word} is to {meaning}", f"to {word} means to {meaning}")))
    if synset.part == "adj":
        return sentence(
            rng.choice((f"it is {word}: {meaning}", f"{word} means {meaning}", f"something {word} is {meaning}"))
        )
    return sentence(f"{word} means {meaning}")


def paragraphs(synsets: list[Synset], rng: Random) -> Iterator[str]:
    """Short texts: a definition, its examples, and sometimes what belongs to the same family."""
    for synset in synsets:
        lines = [definition_sentence(synset, rng)]
        lines += [sentence(example) for example in synset.examples]
        if synset.children and rng.random() < 0.5:
            for child in rng.sample(synset.children, min(3, len(synset.children))):
                lines.append(definition_sentence(child, rng))
        yield " ".join(lines)


def jargon_file(path: Path, known: set[str]) -> Iterator[str]:
    """The paragraphs of the Jargon File's lexicon whose words are nearly all ``known``."""
    text = path.read_text("utf-8", "replace")
    text = text[text.index("The Jargon Lexicon") :]
    text = text.translate(str.maketrans("‘’“”", "''\"\"", "{}"))
    for block in re.split(r"\n\s*\n", text):
        paragraph = re.sub(r"\s+", " ", re.sub(r"^\s*\d+\. ", "", block)).strip()
        letters = sum(char.isalpha() or char in " ,.'" for char in paragraph)
        if len(paragraph) < 100 or not paragraph[0].isalpha() or letters < 0.94 * len(paragraph):
            continue
        words = words_of(paragraph)
        if sum(word.lower() not in known for word in words) <= 0.04 * len(words) and wanted(paragraph):
            yield paragraph
