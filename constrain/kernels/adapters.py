"""Adapters, as LLVM's code: they take the arguments of a kernel as words (signatures.py) and call it numba's way."""

from __future__ import annotations

from constrain.kernels.signatures import Signature

_LLVM_TYPES = {"bool": "i8", "float32": "float", "float64": "double", "int32": "i32", "uint32": "i32"}


def adapter(symbol: str, signature: Signature) -> str:
    """A function of (words, result, error) that calls a kernel.

    numba passes an array on as seven values, for one dimension: an owner, a parent, how many items, their size, the
    address, the shape and the strides.
    """
    lines: list[str] = []
    passed: list[str] = []

    def make(text: str) -> str:
        lines.append(f"  %v{len(lines)} = {text}")
        return f"%v{len(lines) - 1}"

    place = 0

    def following(kind: str = "i64") -> str:
        nonlocal place
        pointer = make(f"getelementptr i64, ptr %words, i64 {place}")
        place += 1
        return make(f"load {kind}, ptr {pointer}")

    for kind in signature.arguments.values():
        if not kind.dimensions:
            passed.append(f"{_LLVM_TYPES.get(kind.dtype, 'i64')} {following(_LLVM_TYPES.get(kind.dtype, 'i64'))}")
            continue
        size = _SIZES[kind.dtype]
        address, shape = following("ptr"), [following() for _ in range(kind.dimensions)]
        strides = [str(size)]
        for length in reversed(shape[1:]):
            strides.insert(0, make(f"mul i64 {strides[0]}, {length}"))
        items = shape[0]
        for length in shape[1:]:
            items = make(f"mul i64 {items}, {length}")
        passed += ["ptr null", "ptr null", f"i64 {items}", f"i64 {size}", f"ptr {address}"]
        passed += [f"i64 {each}" for each in (*shape, *strides)]
    types = ", ".join(each.split()[0] for each in passed)
    return "\n".join(
        [
            f"declare i32 @kernel_{symbol}(ptr, ptr, {types})",
            f"define i32 @adapter_{symbol}(ptr %words, ptr %result, ptr %error) {{",
            *lines,
            f"  %status = call i32 @kernel_{symbol}(ptr %result, ptr %error, {', '.join(passed)})",
            "  ret i32 %status",
            "}",
        ]
    )


_SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
}
