"""Training: the estimator against its definition, and the whole command on a made-up source."""

from __future__ import annotations

import io
import math
import random
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

from constrain.demo.ngram import DemoModel
from tools.demo_model.bpe_training import learn_merges
from tools.demo_model.ngram_training import count_ngrams, estimate, pack, prune
from tools.demo_model.train import main
from tools.demo_model.wordnet import read_wordnet

END, VOCAB, ORDER = 0, 6, 4


def random_stream(seed):
    rng = random.Random(seed)
    tokens = [END]
    for _ in range(40):
        tokens += [rng.choice((1, 1, 1, 2, 2, 3, 4, 5)) for _ in range(rng.randint(1, 8))] + [END]
    return tokens


class NaiveKneserNey:
    """Interpolated modified Kneser-Ney straight from its definition."""

    def __init__(self, tokens, order, scale):
        self.counts = [Counter() for _ in range(order + 1)]
        for size in range(1, order + 1):
            for i in range(len(tokens) - size + 1):
                gram = tuple(tokens[i : i + size])
                if END not in gram[1:-1]:
                    self.counts[size][gram] += 1
        self.total = len(tokens)
        self.ends = tokens.count(END)
        for size in range(1, order):
            preceded = defaultdict(set)
            for gram in self.counts[size + 1]:
                preceded[gram[1:]].add(gram[0])
            self.counts[size] = Counter(
                {
                    gram: count if gram[0] == END and size > 1 else len(preceded[gram])
                    for gram, count in self.counts[size].items()
                }
            )
        self.discounts = [None] + [self.discount(size, scale if size > 2 else 1) for size in range(1, order + 1)]

    def discount(self, size, scale):
        values = list(self.counts[size].values())
        n1, n2, n3, n4 = (max(1, values.count(number)) for number in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2)
        raw = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
        return [0.0] + [
            scale * min(max(value, 0.05), limit - 0.05) for value, limit in zip(raw, (1, 2, 3), strict=True)
        ]

    def probability(self, word, context):
        if not context:
            unigrams = {w: self.unigram(w) for w in range(VOCAB)}
            end = self.ends / self.total
            return end if word == END else unigrams[word] * (1 - end) / sum(p for w, p in unigrams.items() if w != END)
        size = len(context) + 1
        children = {gram[-1]: n for gram, n in self.counts[size].items() if gram[:-1] == context}
        lower = self.probability(word, context[1:])
        if not children:
            return lower
        discounts = self.discounts[size]
        held_back = sum(discounts[min(n, 3)] for n in children.values())
        own = children.get(word, 0)
        return (own - discounts[min(own, 3)] + held_back * lower) / sum(children.values())

    def unigram(self, word):
        counts = {gram[0]: n for gram, n in self.counts[1].items()}
        held_back = sum(self.discounts[1][min(n, 3)] for n in counts.values())
        own = counts.get(word, 0)
        return (own - self.discounts[1][min(own, 3)] + held_back / VOCAB) / sum(counts.values())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1.0, 0.6])
def test_model_equals_the_definition(seed, scale):
    tokens = random_stream(seed)
    naive = NaiveKneserNey(tokens, ORDER, scale)
    model = trained(tokens, scale, limit=10**9)
    compared = 0
    for size in range(ORDER):
        for i in range(len(tokens) - size):
            context = tokens[i : i + size]
            if END in context[1:]:
                continue
            # The model begins a text where the context is shorter than its order.
            seen = tuple(context) if len(context) == ORDER - 1 or context[:1] == [END] else (END, *context)
            got = np.exp(model.logits(context))
            for word in range(VOCAB):
                assert math.isclose(got[word], naive.probability(word, seen), rel_tol=0.2, abs_tol=1e-4)
                compared += 1
    assert compared > 1000


def trained(tokens, scale, limit):
    orders = count_ngrams(np.array(tokens, dtype=np.int64), VOCAB, END, ORDER)
    estimate(orders, VOCAB, END, scale)
    file = io.BytesIO()
    np.savez(file, order=np.array(ORDER), **pack(orders, prune(orders, limit)))
    file.seek(0)
    return DemoModel(file, END)


def test_pruning_keeps_what_matters_most():
    tokens = random_stream(5)
    full, pruned, bare = (trained(tokens, 1.0, limit) for limit in (10**9, 60, 1))
    assert len(full._costs) > len(pruned._costs) > len(bare._costs)

    def cost(model):
        return -sum(float(model.logits(tokens[:i])[tokens[i]]) for i in range(1, len(tokens)))

    assert cost(full) < cost(pruned) < cost(bare)


def test_merges_join_the_most_frequent_pair():
    tokens, merges = learn_merges({b"abab": 3, b"abc": 2, b"zz": 1}, 300)
    assert tokens[256:] == [b"ab", b"abab", b"abc"], "zz occurs once only"
    assert merges == [(97, 98), (256, 256), (256, 99)]


def wordnet_folder(folder):
    """A database with one family of nouns in every lexicographer file, some names, and the rest."""
    lines = []

    def add(part, topic, words, gloss, pointer=None):
        offset = f"{len(lines) + 1:08}"
        pointers = "000" if pointer is None else f"001 {pointer[0]} {pointer[1]} n 0000"
        spelled = " ".join(f"{word.replace(' ', '_')} 0" for word in words)
        lines.append((part, f"{offset} {topic:02} {part[0]} {len(words):02x} {spelled} {pointers} | {gloss}  "))
        return offset

    for topic in range(3, 29):
        kind = f"kind{chr(94 + topic)}"
        parent = add("noun", topic, [kind], 'a kind of thing; "he saw the kind of thing again"')
        for name in ("alpha", "beta", "gamma", "delta"):
            add("noun", topic, [name, f"{name} one"], f"a {kind} that is {name}", ("@", parent))
    for first, last in pairwise(("Ada", "Byron", "Cole", "Dora", "Earl")):
        add("noun", 18, [last, f"{first} {last}"], "a person (1815-1852)", ("@i", "00000001"))
        add("noun", 15, [f"{first}ville"], "a city in a republic", ("@i", "00000001"))
    add("noun", 15, ["Utopia"], "a republic", ("@i", "00000001"))
    for word in ("small", "green", "quick"):
        add("adj", 0, [f"{word}(a)"], f'being {word}; "a {word} thing is a good thing"')
        add("verb", 30, [word], f"make {word}")
        add("adv", 2, [f"{word}ly"], f"in a {word} way")
    add("noun", 18, ["cad"], "an offensive word for a person")
    for part in ("noun", "verb", "adj", "adv"):
        text = "  1 The licence comes first.\n" + "".join(f"{line}\n" for kind, line in lines if kind == part)
        (folder / f"data.{part}").write_text(text)
    return folder


def test_reading_wordnet(tmp_path):
    synsets = {synset.words[0]: synset for synset in read_wordnet(wordnet_folder(tmp_path), 1)}
    assert "cad" not in synsets
    assert synsets["small"].definition == "being small" or synsets["small"].part == "verb"
    city = synsets["Adaville"]
    assert city.is_instance
    assert city.definition == "a city in a republic"
    family = synsets["alpha"].parents[0].children
    assert [synset.words[0] for synset in family] == ["alpha", "beta", "gamma", "delta"]
    assert synsets["alpha"].parents[0].examples == ["he saw the kind of thing again"]


def test_the_whole_command_twice(tmp_path, capsys):
    source = tmp_path / "wordnet"
    source.mkdir()
    wordnet_folder(source)
    options = ["--common", "1", "--records", "150", "--vocab-size", "500", "--ngrams", "3000"]
    for name in ("one", "two"):
        main(["--wordnet", str(source), "--out", str(tmp_path / name), *options])
    for file in ("tokenizer.json", "model.npz"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert "bits per byte" in capsys.readouterr().err
