"""Calls of kernels through pointers in the header."""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, types, uint8
from numba.extending import intrinsic

from constrain.engine.storage.access import i64, u8
from constrain.engine.storage.header import CTX, FIRST_LINK, HEADER
from constrain.engine.storage.jit import compile_inner, njit_inner, put_off
from constrain.engine.storage.schemas import TOKEN_BYTES, TOKEN_STARTS

_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with

# Kernels that others reach through a pointer in the header (see far_call).
(
    F_DERIVATIVE,
    F_SET_OPERATION,
    F_LIVE,
    F_LEXER_STEP,
    F_LEXER_STATE,
    F_CORE,
    F_ROW,
    F_SCAN,
    F_STEP,
    F_SPLIT,
    F_ACCEPT_SET,
    F_TWIN,
    F_MASK,
    F_CLOSURE,
    F_LOOP,
    F_FIND_CLOSURE,
    F_FILL,
    F_ENDS,
    F_DESCRIBE,
    F_SUBSUME,
    F_FORBID,
    F_NODE_COST,
    F_STATE_COST,
    F_TOKENS,
    F_NEAR,
    F_PLAIN,
    F_READ_KEYS,
    F_LEAP,
    F_LOOPS,
    F_INSIDE,
    F_FREE,
    F_AGREE,
    F_COUNTED,
    F_LIST,
    F_STATE_OF_ROW,
    F_HASH,
    F_PRINT,
    F_WITHOUT_INDENTS,
    F_INDENTS,
    F_COST_NODE,
    F_PATH_NODE,
) = range(41)

addresses = np.zeros(HEADER - FIRST_LINK, np.int64)


def far_entry(index: int, kernel: Any) -> None:
    """Make ``kernel``, of signature int64(CTX, int64, int64), callable as ``far_call(ctx, index, ...)``."""
    if put_off(kernel):
        return
    compiled = compile_inner(kernel)
    addresses[index] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def _caller_of(*kinds: Any) -> Any:
    """A function of an address and a tuple of arguments of these types: it calls a kernel that returns an int64."""

    @_intrinsic
    def call(_typing: Any, address: Any, args: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            pointer = builder.inttoptr(values[0], convention.get_function_type(types.int64, kinds).as_pointer())
            arguments = [builder.extract_value(values[1], i) for i in range(len(kinds))]
            _status, result = convention.call_function(builder, pointer, types.int64, kinds, arguments)
            return result

        return types.int64(types.int64, args), codegen

    return call


_call_address = _caller_of(CTX, int64, int64)

_call_reader = _caller_of(CTX, types.Array(uint8, 1, "C", readonly=True), CTX, int64)


@njit_inner(int64(CTX, int64, int64, int64))
def far_call(ctx, index, a, b):
    """Call the kernel registered under ``index``.

    An ordinary call makes numba link the callee, and all that it calls, into the caller and
    optimise it again; with calls ten deep that is most of the compile time.  These calls happen
    where something is computed for the first time, so an indirect jump costs nothing that matters.
    """
    return _call_address(ctx[FIRST_LINK + index], (ctx, a, b))


@njit_inner(int64(CTX, CTX, int64))
def read_token(ctx, memory, token):
    """Let the kernel F_READ_KEYS (unique_keys/reading.py) read a token of the vocabulary."""
    return _call_reader(ctx[FIRST_LINK + F_READ_KEYS], (memory, u8(ctx, TOKEN_BYTES), i64(ctx, TOKEN_STARTS), token))
