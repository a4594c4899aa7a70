"""What a sampler draws from, in plain numpy: a twin that sorts everything."""

from __future__ import annotations

import math

import numpy as np


def pack(allowed):
    """A list of booleans as a bitmask row."""
    bits = np.array([*allowed, *[False] * (-len(allowed) % 32)])
    return np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)


def naive_adjusted(logits, history, options):
    """Penalties and bias, token by token; float32 like a row of logits."""
    window = options.get("repetition_window", 64)
    recent = list(history)[-window:] if window else list(history)
    row = [float(x) for x in logits]
    for token in set(recent):
        x, r = row[token], options.get("repetition_penalty", 1.0)
        row[token] = x / r if x > 0 else x * r
        row[token] -= options.get("frequency_penalty", 0.0) * recent.count(token)
        row[token] -= options.get("presence_penalty", 0.0)
    row = np.array(row, dtype=np.float32)
    for token, bias in (options.get("logit_bias") or {}).items():
        row[token] = np.float32(float(row[token]) + bias)
    return row


def naive_distribution(logits, allowed, history, options):
    """{id: probability} by sorting everything."""
    row = naive_adjusted(logits, history, options)
    ids = [i for i in range(len(row)) if allowed[i] and row[i] > -np.inf]
    ids.sort(key=lambda i: (-row[i], i))
    t = options["temperature"]
    if t == 0:
        return {ids[0]: 1.0}
    if options["top_k"]:
        ids = ids[: options["top_k"]]

    def probabilities():
        x = np.array([float(row[i]) for i in ids])
        p = np.exp((x - x.max()) / t)
        return p / p.sum()

    def cut(order, p, mass):
        keep = 1
        while keep < len(order) and p[order[:keep]].sum() < mass:
            keep += 1
        return [ids[j] for j in order[:keep]]

    if options["top_p"] < 1:
        ids = cut(list(range(len(ids))), probabilities(), options["top_p"])
    p = probabilities()
    ids = [i for i, q in zip(ids, p, strict=True) if q >= options.get("min_p", 0.0) * p.max() * (1 - 1e-12)]
    if options.get("typical", 1.0) < 1:
        p = probabilities()
        entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
        with np.errstate(divide="ignore"):
            distance = np.abs(-np.log(p) - entropy)
        order = sorted(range(len(ids)), key=lambda j: (round(distance[j], 9), -p[j], ids[j]))
        ids = cut(order, p, options["typical"])
    return dict(zip(ids, probabilities().tolist(), strict=True))


def assert_drawn_by(ids, probabilities, drawn):
    """These ids alone were drawn, each about as often as it should be."""
    counts = np.bincount(drawn, minlength=max(ids) + 1)
    assert set(np.flatnonzero(counts)) <= set(ids.tolist())
    expected = len(drawn) * probabilities
    statistic = float(((counts[ids] - expected) ** 2 / expected).sum())
    # The point of chi-square above which 1 in 10,000 is, by the Wilson-Hilferty approximation.
    freedom = len(ids) - 1
    assert freedom >= 3
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.719 * math.sqrt(2 / (9 * freedom))) ** 3
