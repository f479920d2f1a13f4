// The tile IR: launches, their loops bound to levels of the machine, buffers with a memory and a layout, and operations on them whose
// scalar expressions are Halide Exprs. Lowering writes it, lowering/cuda/emit prints it; every decision is visible in it.
//
// Expressions. Variables are loop variables, axis names, AXIS.first (the axis at the start of a vector), thread.rank, block.rank, symbols
// and Lets, all Int(32). A read of a buffer is a Call of type Halide: its name is the buffer's, its arguments the indices (outermost
// first), its value_index the element of the tuple. Everything else is scalar arithmetic and the primitives of dsl/algorithm/math.h.
// Expressions are DAGs: a shared node is evaluated once in a scope.
#pragma once

#include <Halide.h>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dsl/algorithm/combiner.h"
#include "dsl/graph/extent.h"
#include "dsl/graph/tensor.h"
#include "runtime/plan.h"

namespace tilewright::tile {

using Halide::Expr;

/// What carries out the iterations of a loop, from the outside in.
enum class Level {
    grid,     ///< blocks of the launch
    cluster,  ///< blocks of one cluster
    loop,     ///< a serial loop
    unroll,   ///< a serial loop with a constant extent, unrolled: values indexed by it are registers
    thread,   ///< threads of the block
    vector,   ///< unrolled, and the axis along which accesses are widened
};
std::string_view name(Level level);

/// A part of an axis: axis = sum over leaves of leaf * stride. `thread` leaves are (thread / unit_stride) % extent, `grid` leaves
/// (block / unit_stride) % extent, `cluster` leaves (rank / unit_stride) % extent.
struct Leaf {
    std::string name;
    Extent extent = 1;  ///< a constant except at grid and loop
    Level level = Level::loop;
    Extent stride = 1;
    Extent unit_stride = 1;
};

/// One dimension of a launch's iteration space and how it is spread over the machine.
struct Axis {
    std::string name;
    Extent extent = 1;
    std::vector<Leaf> leaves;  ///< outermost first
    Expr shift = {};  ///< where given, subtracted from the sum of the leaves: vectors begin where memory is aligned, before the axis does

    bool exact() const;  ///< the leaves cover the extent without excess: no guard is needed
};

/// `descriptor` is a tensor in global memory as the bulk copy unit sees it: a kernel parameter.
enum class Memory { global, shared, registers, descriptor };

/// Storage. Element (i, j, …) lies at offset + i*strides[0] + j*strides[1] + …, in elements.
struct Buffer {
    enum class Binding { none, input, output, scratch };
    std::string name;                 ///< a C identifier
    std::vector<Halide::Type> types;  ///< one for each element of a tuple; more than one only in registers and shared memory
    Memory memory = Memory::global;
    std::vector<Extent> extents;  ///< constants outside global memory; {} is a scalar
    std::vector<Extent> strides;
    Extent offset = 0;
    Extent address_offset = 0;  ///< elements between an aligned address and element 0: a view may start anywhere
    Binding binding = Binding::none;
    int index = 0;               ///< of the kernel's input or output, or the scratch slot
    bool zeroed = false;         ///< scratch that starts as zeros
    int byte_offset = 0;         ///< in the block's dynamic shared memory; set by plan_shared_memory
    std::string combiner;        ///< tuple element type: that combiner's value
    std::int64_t alignment = 0;  ///< bytes; what accesses to it ask of its address
    bool ordered = false;        ///< shared: those who write and read it wait for each other by barriers of their own
    std::string overlays;        ///< shared: begins where this buffer does, whose content is no longer wanted
    TensorMapArgument map;       ///< of Memory::descriptor; its buffer is the kernel's input or output
};

/// An associative operator as expressions over variables NAME_a0… and NAME_b0…; printed as a functor.
struct CombinerDefinition {
    std::string name;
    Combiner kind = Combiner::general;
    std::vector<Halide::Type> types;
    std::vector<std::string> left, right;  ///< variable names
    std::vector<Expr> result;
    std::vector<Expr> identity;
};

struct Statement;
using Block = std::vector<Statement>;

/// level is loop, unroll or vector. `begin` is 0 where undefined.
struct For {
    std::string variable;
    Extent extent;
    Level level = Level::loop;
    Block body;
    bool rolled = false;    ///< the compiler shall not unroll it: code that is met once comes from memory
    bool disjoint = false;  ///< all iterations of all threads touch different places of shared memory
    bool whole = false;     ///< a vector loop with every lane inside of the axis
};
struct If {
    Expr condition;
    Block body;
};
/// A named Int(32) (or other scalar) value.
struct Let {
    std::string name;
    Expr value;
};
struct Store {
    std::string buffer;
    std::vector<Expr> indices;
    std::vector<Expr> values;                       ///< one for each element of the tuple
    std::optional<Combiner> atomic = std::nullopt;  ///< how the value joins what is there, in one step; it replaces it where none is given
};
/// `lanes` neighbours along the last index move between memory and the register buffer `registers` [lanes] in one access.
struct VectorLoad {
    std::string registers, buffer;
    std::vector<Expr> indices;
    int lanes = 1;
    std::vector<Expr> place = {};  ///< which vector of `registers`, where that holds several: [count, lanes]
    Expr condition = {};           ///< where it is given and does not hold, the registers become 0 and nothing is read
    Expr inside = {};              ///< likewise, some lanes may lie outside of the tensor and have any value
    bool aligned = true;           ///< else it begins anywhere, and lanes outside of the tensor have any value
};
struct VectorStore {
    std::string registers, buffer;
    std::vector<Expr> indices;
    int lanes = 1;
    std::optional<Combiner> atomic = std::nullopt;
};
/// accumulator[place] = combiner(accumulator[place], terms): within one thread.
struct Fold {
    std::string accumulator, combiner;
    std::vector<Expr> place;
    std::vector<Expr> terms;
};
/// Threads (t / stride) % size, and then the blocks of the cluster, combine value[place]; all get the result.
struct Combine {
    struct Group {
        int size = 1, stride = 1;
    };
    std::string value, combiner;
    std::vector<Expr> place;
    std::vector<Group> groups;
    std::string shared;               ///< buffer that the exchange uses; empty within a warp
    int cluster_size = 1;             ///< blocks; 1 for none
    std::string cluster_shared = {};  ///< buffer of that many values that they exchange through
};
/// exclusive[place] = combination of `total[place]` of the threads before this one in its group, identity in the first; carry[place] is
/// combined in front of it, and then becomes carry combined with the whole group's total.
struct ScanThreads {
    std::string total, exclusive, carry, combiner;
    std::vector<Expr> place;
    Combine::Group group;
    std::string shared;
};
struct Barrier {
    enum class Scope { warp, block, cluster } scope = Scope::block;
};
struct Comment {
    std::string text;
};
/// The thread is done: what follows is for the others. Ends the part of a warp role.
struct Exit {};
/// A call of a device function with buffers by address and scalars: what has no form of its own (sorting steps, the copy engine, the
/// matrix unit). "tw::NAME<template_arguments>(arguments)". Buffers that it reads and writes are named for barriers and for the verifier.
struct Invoke {
    struct Argument {
        std::string buffer;  ///< address of buffer[indices]; empty for a scalar
        std::vector<Expr> indices;
        Expr scalar;
    };
    std::string function;
    std::vector<std::string> template_arguments;
    std::optional<Halide::Type> template_type;  ///< an element type that stands before the other template arguments
    std::vector<Argument> arguments;
    std::vector<std::string> reads, writes;
    bool whole_block = false;  ///< every thread of the block must arrive: may not stand under a condition that differs among threads
};

struct Statement {
    std::variant<For, If, Let, Store, VectorLoad, VectorStore, Fold, Combine, ScanThreads, Barrier, Comment, Exit, Invoke> node;
    template<typename T> const T *as() const { return std::get_if<T>(&node); }
    template<typename T> T *as() { return std::get_if<T>(&node); }
};

/// One __global__ function and its launch.
struct Launch {
    std::string name;
    std::vector<Axis> axes;  ///< for people; the body says the same
    Extent blocks = 1;       ///< grid.x
    int threads = 1;
    int cluster = 1;                        ///< blocks a cluster
    int min_blocks_per_multiprocessor = 0;  ///< of __launch_bounds__; 0: unsaid
    std::vector<Buffer> buffers;
    std::vector<CombinerDefinition> combiners;
    std::vector<std::string> symbols;  ///< scalar parameters: int64 symbols of extents
    bool checks_indices = false;       ///< takes the status address
    int shared_bytes = 0;              ///< dynamic
    Block body;

    const Buffer *find_buffer(std::string_view name) const;
    Buffer *find_buffer(std::string_view name);
    const CombinerDefinition *find_combiner(std::string_view name) const;
};

/// What one kernel runs, in order.
struct Program {
    std::string kernel;
    std::vector<Launch> launches;
    SymbolRanges symbols;
    int inputs = 0;  ///< of the kernel
};

std::string print(const Program &program);
std::string print(const Launch &launch);
/// Every buffer, variable and combiner is defined before its use; register and vector extents are constants; barriers and collective
/// operations stand under no condition that differs among threads; indices of registers and shared buffers stay inside. InternalError.
void verify(const Program &program);

/// A read of a buffer, as expressions write it.
Expr read(const Buffer &buffer, const std::vector<Expr> &indices, int tuple_index = 0);
/// An Int(32) variable.
Expr variable(const std::string &name);
/// An axis by its loops; `first`: the first element of the vector that it is in.
Expr sum_of_leaves(const Axis &axis, bool first = false);

}  // namespace tilewright::tile
