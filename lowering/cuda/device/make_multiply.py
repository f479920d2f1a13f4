"""Writes multiply.h and multiply_types.h: one struct for each element type and width of the warpgroup matrix multiply."""
HEAD = '''// Warpgroup matrix multiply-accumulate of Hopper (PTX ISA, "wgmma.mma_async"): D[64, N] += A[64, 16] * B[16, N] with both operands in
// shared memory and float32 sums in registers. Thread t of the warpgroup holds, in d[j * 4 + h * 2 + e], row (t / 32) * 16 + (t % 32) / 4 + 8 * h
// and column j * 8 + (t % 4) * 2 + e. Written by make_multiply.py.
#pragma once

#include "types.h"

namespace tw {

/// `accumulate` false: D starts as zeros. A and B are matrix descriptors; a transposed operand runs along M or N in memory.
template<class T, int N, int TransposeA, int TransposeB> struct warpgroup_multiply;
'''
BODY = '''template<int TransposeA, int TransposeB> struct warpgroup_multiply<{type}, {n}, TransposeA, TransposeB> {{
    static __device__ __forceinline__ void run(float (&d)[{count}], uint64 a, uint64 b, bool accumulate) {{
        asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{p}, 0;\\nwgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ptx}.{ptx} {{{registers}}}, %{a}, %{b}, p, 1, 1, %{ta}, %{tb};\\n}}"
                     : {outputs} : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(TransposeA), "n"(TransposeB));
    }}
}};
'''
REGISTERS_HEAD = """/// With A in registers: a[r] holds two neighbours along K of row (t % 32) / 4 + 8 * (r % 2), from (t % 4) * 2 + 8 * (r / 2) on.
template<class T, int N, int TransposeB> struct warpgroup_multiply_registers;
"""
REGISTERS_BODY = '''template<int TransposeB> struct warpgroup_multiply_registers<{type}, {n}, TransposeB> {{
    static __device__ __forceinline__ void run(float (&d)[{count}], const uint32 (&a)[4], uint64 b, bool accumulate) {{
        asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{p}, 0;\\nwgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ptx}.{ptx} {{{registers}}}, {{%{a}, %{a1}, %{a2}, %{a3}}}, %{b}, p, 1, 1, %{tb};\\n}}"
                     : {outputs} : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)), "n"(TransposeB));
    }}
}};
'''
parts = [HEAD]
for ptx, kind in (("bf16", "bfloat16"), ("f16", "half")):
    for n in (8, 24, 40, 56, *range(16, 257, 16)):
        count = n // 2
        parts.append(BODY.format(type=kind, n=n, count=count, ptx=ptx, a=count, b=count + 1, p=count + 2, ta=count + 3, tb=count + 4,
                                 registers=", ".join(f"%{i}" for i in range(count)),
                                 outputs=", ".join(f'"+f"(d[{i}])' for i in range(count))))
parts.append(REGISTERS_HEAD)
for ptx, kind in (("bf16", "bfloat16"), ("f16", "half")):
    for n in (8, 16, 32, 48, 64, 96, 128, 160, 192, 224, 256):
        count = n // 2
        parts.append(REGISTERS_BODY.format(type=kind, n=n, count=count, ptx=ptx, a=count, a1=count + 1, a2=count + 2, a3=count + 3, b=count + 4, p=count + 5, tb=count + 6,
                                           registers=", ".join(f"%{i}" for i in range(count)),
                                           outputs=", ".join(f'"+f"(d[{i}])' for i in range(count))))
parts.append("}  // namespace tw\n")
open(__file__.replace("make_multiply.py", "multiply.h"), "w").write("\n".join(parts))

TYPES_HEAD = '''// The same multiply for elements of 8 and 32 bits (multiply.h has those of 16): rows of both operands run along K in shared memory, an
// instruction takes 32 bytes of each. Written by make_multiply.py.
#pragma once

#include "types.h"

namespace tw {

/// A and B: int8 and uint8 with int32 sums, float8 types, or float, of which the unit takes the bits of tf32.
template<class A, class B, int N> struct warpgroup_multiply_rows;
'''
TYPES_BODY = '''template<> struct warpgroup_multiply_rows<{a_type}, {b_type}, {n}> {{
    static __device__ __forceinline__ void run({sum} (&d)[{count}], uint64 a, uint64 b, bool accumulate) {{
        asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{p}, 0;\\nwgmma.mma_async.sync.aligned.m64n{n}k{k}.{ptx} {{{registers}}}, %{a}, %{b}, p{signs};\\n}}"
                     : {outputs} : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
    }}
}};
'''
kinds = [("float", "float", "f32.tf32.tf32", 8)]
kinds += [(f"float8_{a}", f"float8_{b}", f"f32.{a}.{b}", 32) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]
kinds += [(f"{'u' * (a == 'u8')}int8", f"{'u' * (b == 'u8')}int8", f"s32.{a}.{b}", 32) for a in ("s8", "u8") for b in ("s8", "u8")]
parts = [TYPES_HEAD]
for a_type, b_type, ptx, k in kinds:
    for n in (8, 16, 32, 64, 96, 128, 192, 256):
        count, whole = n // 2, ptx.startswith("s32")
        parts.append(TYPES_BODY.format(a_type=a_type, b_type=b_type, n=n, k=k, ptx=ptx, count=count, a=count, b=count + 1, p=count + 2,
                                       sum="int32" if whole else "float", signs="" if whole else ", 1, 1",
                                       registers=", ".join(f"%{i}" for i in range(count)),
                                       outputs=", ".join(f'"+{"r" if whole else "f"}"(d[{i}])' for i in range(count))))
parts.append("}  // namespace tw\n")
open(__file__.replace("make_multiply.py", "multiply_types.h"), "w").write("\n".join(parts))
