"""The character classes against Python's own, for what both versions of Unicode know."""

from __future__ import annotations

import unicodedata

from constrain.tokenizers.splitting import unicode_classes as uc

BY_CATEGORY = {
    "Lu": uc.UPPER, "Ll": uc.LOWER, "Lt": uc.TITLE, "Lm": uc.MODIFIER, "Lo": uc.OTHER_LETTER,
    "M": uc.MARK, "N": uc.NUMBER, "P": uc.PUNCTUATION, "S": uc.SYMBOL, "Z": uc.SPACE,
}  # fmt: skip


def test_every_assigned_character():
    table = uc.class_table()
    assert len(table) == 0x110000
    known = 0
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        # A few characters have changed category between versions: compare the long settled ones.
        if category == "Cn" or code >= 0x1_0000 or unicodedata.ucd_3_2_0.category(chr(code)) != category:
            continue
        expected = BY_CATEGORY.get(category, BY_CATEGORY.get(category[0], uc.OTHER))
        if code in (*range(9, 14), 0x85):
            expected = uc.SPACE
        assert table[code] == expected, hex(code)
        known += 1
    assert known > 40_000
