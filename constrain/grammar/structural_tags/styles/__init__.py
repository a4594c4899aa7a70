"""How models write the arguments of a call, beside JSON."""

STYLES: dict[str, object] = {}
