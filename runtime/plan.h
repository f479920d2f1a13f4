// What a compiled program is at run time: buffers, code and an ordered list of steps. Plain data, written by lowering, run by runtime.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dsl/graph/program.h"
#include "dsl/graph/tensor.h"

namespace tilewright {

enum class TargetKind { cpu, cuda };

/// A tensor that steps name by its index in Plan::buffers.
struct PlanBuffer {
    enum class Kind {
        input,         ///< the caller's; `index` counts user inputs
        weight,        ///< bound once at load; `index` counts Plan::inputs
        output,        ///< given to the caller; `index` counts user outputs
        intermediate,  ///< in the arena, by lifetime
    };
    Kind kind = Kind::intermediate;
    std::string name;
    TensorMeta meta;
    int index = 0;
    int write_back_to = -1;  ///< buffer (an input or a weight) that receives this buffer's value at the end; -1 for none
    int alias_of = -1;       ///< buffer that it shares its storage with; -1 for none
};

/// Machine code: an object file for the CPU, a cubin for a GPU. The content names it in the kernel cache.
struct CodeObject {
    std::string name;  ///< of the kernel, for people
    std::vector<std::byte> image;
    std::string source;  ///< CUDA C++ or Halide's statement; for print
    /// ptxas' report, 0 on the CPU. Bytes except `registers` (a thread).
    int registers = 0, spill_stores = 0, spill_loads = 0, shared_bytes = 0, stack_bytes = 0;
};

/// Descriptor of the bulk tensor copy unit (cuTensorMapEncodeTiled), made when addresses are known. Innermost dimension first.
struct TensorMapArgument {
    int buffer = -1;
    DType dtype = DType::bfloat16;
    std::vector<Extent> sizes;         ///< elements
    std::vector<Extent> byte_strides;  ///< of dimensions 1…; multiples of 16
    std::vector<std::uint32_t> box;
    int swizzle_bytes = 0;         ///< 0, 32, 64 or 128
    int l2_promotion_bytes = 256;  ///< 0, 64, 128 or 256
    Extent element_offset = 0;
    bool written = false;
    bool rounds_to_tf32 = false;  ///< float32 elements arrive rounded to 11 bits
};
/// Address of element 0 of a tensor, or of a strided view of it.
struct BufferArgument {
    int buffer = -1;
    bool written = false;  ///< the step stores to it
    std::optional<TensorMeta>
        view;  ///< what the code sees: sizes and strides; its offset (elements) is added to the address. Empty: the tensor
};
struct ScalarArgument {
    Extent value;
    int bytes = 4;
};
struct StatusArgument {};  ///< address of the plan's error flag: {int32 site + 1, int32 unused, int64 index, int64 size}
struct ScratchArgument {
    Extent bytes;
    bool zeroed = false;
    int slot = 0;
};  ///< device memory for this step alone; equal slots share it
using StepArgument = std::variant<BufferArgument, ScalarArgument, TensorMapArgument, StatusArgument, ScratchArgument>;

/// A call of a function in an object file compiled by Halide: halide_buffer_t for each buffer, int32 for each scalar, in this order.
struct CpuStep {
    int code = -1;
    std::string function;
    std::vector<StepArgument> arguments;
};
/// A launch of a CUDA kernel.
struct LaunchStep {
    int code = -1;
    std::string function;
    std::array<Extent, 3> grid{1, 1, 1};
    std::array<int, 3> block{1, 1, 1};
    std::array<int, 3> cluster{1, 1, 1};
    int dynamic_shared_bytes = 0;
    bool cooperative = false;
    std::vector<StepArgument> arguments;
};
/// A product that cuBLASLt computes: D = epilogue(alpha * op(A) op(B) + bias). Row-major, innermost dimension last.
struct MatmulEngineStep {
    int a = -1, b = -1, bias = -1, d = -1;  ///< buffers
    Extent batch = 1, m = 1, n = 1, k = 1;
    Extent a_offset, b_offset, bias_offset, d_offset;  ///< elements, from element 0 of the buffer
    Extent a_row_stride, b_row_stride, d_row_stride, a_batch_stride, b_batch_stride, d_batch_stride;
    bool transpose_a = false, transpose_b = false;  ///< B is [n, k] where transposed
    DType input_type = DType::bfloat16, output_type = DType::bfloat16;
    std::string epilogue;  ///< "", "relu", "gelu_tanh"
    float alpha = 1.0F;
    int algorithm = -1;  ///< index into cuBLASLt's heuristic list, fixed when tuned
};
/// A tensor of a graph that cuDNN computes. Element 0 lies `offset` elements behind the first of the buffer.
struct EngineTensor {
    int buffer = -1;
    DType dtype = DType::bfloat16;
    std::vector<Extent> sizes, strides;  ///< elements
    Extent offset = 0;
};
/// value = max(value, 0), or value OP an operand that broadcasts to it, in float32.
struct EnginePointwise {
    enum class Op { relu, add, multiply };
    Op op = Op::relu;
    int tensor = -1;  ///< of GraphEngineStep::tensors; -1: the operand is `number`
    float number = 0.0F;
};
/// A graph that cuDNN computes: a convolution with an epilogue, or attention.
struct GraphEngineStep {
    enum class Operation { convolution, attention };
    Operation operation = Operation::convolution;
    /// A convolution's input [images, channels, places…] and weights [outputs, channels, taps…]; attention's queries, keys and values
    /// [batch, heads, rows, columns], where several heads of queries may share keys. Then what the epilogue reads; the result is the last.
    std::vector<EngineTensor> tensors;
    std::vector<std::int64_t> padding, strides, dilations;  ///< of a convolution, for each dimension of space; padding in front
    float scale = 1.0F;                                     ///< of attention's scores
    bool causal = false;                                    ///< row r sees keys 0 to r
    std::vector<EnginePointwise> epilogue;                  ///< in order
    int algorithm = -1;                                     ///< index into cuDNN's plans, best guess first; fixed when tuned
};
/// A comparison of an extent with a number; `op` is one of <= < >= > ==.
struct ExtentCondition {
    Extent extent;
    std::string op;
    std::int64_t value = 0;
    bool holds(const SymbolValues &symbols) const;
};
using ExtentConditions = std::vector<ExtentCondition>;  ///< all of them

/// Steps of a schedule's variants for other sizes stand side by side: `when` must hold, and none of `unless` may.
struct Step {
    std::string kernel;      ///< name, for people and errors
    std::vector<int> sites;  ///< the plan's index site for each of the kernel's own; empty where they are the same
    std::variant<CpuStep, LaunchStep, MatmulEngineStep, GraphEngineStep> action;
    ExtentConditions when;
    std::vector<ExtentConditions> unless;
    bool runs_for(const SymbolValues &symbols) const;
};

/// Where and what a checked index was, for the error message.
struct IndexSite {
    std::string message;  ///< "node embedding: aten.embedding.default, dimension 0 of weight"
};

struct Plan {
    TargetKind target = TargetKind::cpu;
    std::string device;  ///< "sm_90a", or the CPU's feature string
    SymbolRanges symbols;
    std::vector<PlanBuffer> buffers;
    std::vector<InputSpec> inputs;  ///< the program's placeholders, weights with their values
    std::vector<int> user_inputs;   ///< buffers, in the program's order
    std::vector<int> user_outputs;
    std::vector<CodeObject> code;
    std::vector<Step> steps;
    std::vector<IndexSite> index_sites;
};

std::string print(const Plan &plan);
void verify(const Plan &plan);

}  // namespace tilewright
