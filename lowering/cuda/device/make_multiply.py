"""Writes the headers multiply*.h: one struct for each element type and width of the warpgroup matrix multiply (PTX ISA, "wgmma.mma_async")."""
from pathlib import Path

FOLDER = Path(__file__).parent

SHARED_HEAD = '''// Warpgroup matrix multiply-accumulate of Hopper (PTX ISA, "wgmma.mma_async"): D[64, N] += A[64, 16] * B[16, N] with both operands in
// shared memory and float32 sums in registers. Thread t of the warpgroup holds, in d[j * 4 + h * 2 + e], row (t / 32) * 16 + (t % 32) / 4 + 8 * h
// and column j * 8 + (t % 4) * 2 + e. Written by make_multiply.py.
#pragma once

#include "types.h"

namespace tw {

/// `accumulate` false: D starts as zeros. A and B are matrix descriptors; a transposed operand runs along M or N in memory.
template<class T, int N, int TransposeA, int TransposeB> struct warpgroup_multiply;
'''
SHARED = '''template<int TransposeA, int TransposeB> struct warpgroup_multiply<{type}, {n}, TransposeA, TransposeB> {{
    static __device__ __forceinline__ void run(float (&d)[{count}], uint64 a, uint64 b, bool accumulate) {{
        asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{c2}, 0;\\nwgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ptx}.{ptx} {{{registers}}}, %{c0}, %{c1}, p, 1, 1, %{c3}, %{c4};\\n}}"
                     : {outputs} : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(TransposeA), "n"(TransposeB));
    }}
}};
'''

REGISTERS_HEAD = '''// The multiply of multiply.h with A in registers. Written by make_multiply.py.
#pragma once

#include "types.h"

namespace tw {

/// a[r] holds two neighbours along K of row (t % 32) / 4 + 8 * (r % 2), from (t % 4) * 2 + 8 * (r / 2) on.
template<class T, int N, int TransposeB> struct warpgroup_multiply_registers;
'''
REGISTERS = '''template<int TransposeB> struct warpgroup_multiply_registers<{type}, {n}, TransposeB> {{
    static __device__ __forceinline__ void run(float (&d)[{count}], const uint32 (&a)[4], uint64 b, bool accumulate) {{
        asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{c5}, 0;\\nwgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ptx}.{ptx} {{{registers}}}, {{%{c0}, %{c1}, %{c2}, %{c3}}}, %{c4}, p, 1, 1, %{c6};\\n}}"
                     : {outputs} : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)), "n"(TransposeB));
    }}
}};
'''

ROWS_HEAD = '''// The multiply of multiply.h for elements of other widths than 16 bits: rows of both operands run along K in shared memory, an instruction
// takes 32 bytes of each. The types are in multiply_tf32.h, multiply_float8.h and multiply_int8.h. Written by make_multiply.py.
#pragma once

#include "types.h"

namespace tw {

/// A and B: int8 and uint8 with int32 sums, float8 types, or float, of which the unit takes the bits of tf32.
template<class A, class B, int N> struct warpgroup_multiply_rows;
'''
TYPE_HEAD = '''// {title} (multiply_rows.h). Written by make_multiply.py.
#pragma once

#include "multiply_rows.h"

namespace tw {{
'''
ROWS = '''template<> struct warpgroup_multiply_rows<{a_type}, {b_type}, {n}> {{
    static __device__ __forceinline__ void run({sum} (&d)[{count}], uint64 a, uint64 b, bool accumulate) {{
        asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{c2}, 0;\\nwgmma.mma_async.sync.aligned.m64n{n}k{k}.{ptx} {{{registers}}}, %{c0}, %{c1}, p{signs};\\n}}"
                     : {outputs} : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
    }}
}};
'''

HALVES = (("bf16", "bfloat16"), ("f16", "half"))


def fill(template, n, letter="f", **fields):
    """The template for N = n: D has n / 2 registers a thread; {c0}, {c1}, … number the operands that follow them."""
    count = n // 2
    places = {f"c{i}": count + i for i in range(8)}
    return template.format(n=n, count=count, registers=", ".join(f"%{i}" for i in range(count)),
                           outputs=", ".join(f'"+{letter}"(d[{i}])' for i in range(count)), **places, **fields)


def fill_rows(a_type, b_type, ptx, k):
    whole = ptx.startswith("s32")
    return [fill(ROWS, n, "r" if whole else "f", a_type=a_type, b_type=b_type, ptx=ptx, k=k, sum="int32" if whole else "float",
                 signs="" if whole else ", 1, 1") for n in (8, 16, 32, 64, 96, 128, 192, 256)]


def write(name, parts):
    (FOLDER / name).write_text("\n".join([*parts, "}  // namespace tw\n"]))


write("multiply.h", [SHARED_HEAD, *(fill(SHARED, n, type=kind, ptx=ptx) for ptx, kind in HALVES for n in (8, 24, 40, 56, *range(16, 257, 16)))])
write("multiply_registers.h", [REGISTERS_HEAD, *(fill(REGISTERS, n, type=kind, ptx=ptx) for ptx, kind in HALVES
                                                 for n in (8, 16, 32, 48, 64, 96, 128, 160, 192, 224, 256))])
write("multiply_rows.h", [ROWS_HEAD])
write("multiply_tf32.h", [TYPE_HEAD.format(title="Products of float32 elements, of which the unit takes the bits of tf32"),
                          *fill_rows("float", "float", "f32.tf32.tf32", 8)])
write("multiply_float8.h", [TYPE_HEAD.format(title="Products of 8-bit floats, with float32 sums"),
                            *(text for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
                              for text in fill_rows(f"float8_{a}", f"float8_{b}", f"f32.{a}.{b}", 32))])
write("multiply_int8.h", [TYPE_HEAD.format(title="Products of 8-bit integers, with int32 sums"),
                          *(text for a in ("s8", "u8") for b in ("s8", "u8")
                            for text in fill_rows("uint8" if a == "u8" else "int8", "uint8" if b == "u8" else "int8", f"s32.{a}.{b}", 32))])
