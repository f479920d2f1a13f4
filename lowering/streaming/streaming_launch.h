// The launch of a kernel that streams, before its statements: what the schedule asks for, axes, buffers, and expressions over them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dsl/schedule/loop_nest.h"
#include "lowering/fusion/kernel.h"
#include "lowering/nests/storage.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/possible_range.h"
#include "lowering/streaming/streaming_form.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// A tile in shared memory that the copy unit fills, in one or several slots, from an operand. Its rows are chunks of `swizzle` bytes,
/// permuted by as much; without swizzle all rows are one.
struct StreamedTile {
    std::string name;
    StreamedOperand operand;
    Halide::Type type;
    int chunks = 1, chunk_columns = 64, rows = 0, swizzle = 128;

    int bytes() const { return chunks * rows * chunk_columns * type.bytes(); }
    std::string barriers() const { return name + "_barriers"; }
};

class StreamingLaunch {
public:
    static constexpr int chunk = 64;          ///< columns of a swizzled row of 128 bytes, and rows of a warpgroup
    static constexpr int atom = 1024;         ///< bytes of 8 swizzled rows: what tiles are aligned by
    static constexpr int group_columns = 32;  ///< of which a group of four lanes gathers 8 each

    /// What it does: multiply, or merge what blocks have summed of parts of the keys.
    enum class Role { multiplies, merges };

    /// UserError where the directives do not fit the form.
    StreamingLaunch(const Kernel &kernel, const StreamingForm &form, Storage &storage, const ScheduledKernel &schedule,
                    const GpuFacts &facts, Role role = Role::multiplies);

    const std::string &axis_name(int i) const { return form.axes[i]; }
    /// Reads of tensors and of what the block keeps, in place of reads of the algorithm's.
    Halide::Expr bound(const Halide::Expr &e);
    Halide::Expr kept(const std::string &name, std::vector<Halide::Expr> indices) const;
    /// A tensor in global memory is a parameter of the launch; where the launch has a name already, the tensor's gives way.
    tile::Buffer used(tile::Buffer tensor);
    /// The tile's slots, their barriers and its tensor map.
    void add_tile(const StreamedTile &tile, int slots);
    void add_shared(const std::string &name, Halide::Type type, std::vector<Extent> extents);
    void add_registers(const std::string &name, Halide::Type type, std::vector<Extent> extents);
    /// Of each thread of the producer: one that takes pieces of unequal length keeps more.
    int producer_registers() const { return takes_from_counter ? 40 : 24; }
    /// Of each thread of a consumer: what the producer's leave.
    int consumer_registers() const;
    /// Of the tile along the row's axis.
    Halide::Expr first_row() const;
    Halide::Expr row_in_tile() const;
    /// What scores are multiplied by before exponentials to base 2.
    Halide::Expr exponent_scale() const { return static_cast<float>(form.scale * 1.4426950408889634); }
    /// Rows of a tile that exist at all.
    int existing_rows() const { return form.group > 0 ? form.group : rows; }
    /// Whether the thread's row at m_half is one that exists; undefined: it is.
    Halide::Expr row_exists() const;
    /// Places of the axis that are planes of their own.
    Extent plane_extent(int axis) const;
    /// What the row's axis goes through in `count` rows, as far as there are rows.
    std::map<std::string, ExprInterval> rows_between(const Halide::Expr &first, int count) const;
    /// Tiles are visited from the last to the first: of a causal mask, those that need it come while nothing overlaps yet.
    static Halide::Expr tile_at(const Halide::Expr &iteration);

    const Algorithm &algorithm;
    const StreamingForm &form;
    Storage &storage;
    const Stage &second;
    const Role role;
    tile::Launch launch;
    VariableRanges ranges;
    Substitution clamped;  ///< what axes are replaced by in places of tensors
    std::function<Halide::Expr(const Halide::Internal::Call *)>
        held_in_registers;                                ///< a tensor's element that was loaded before; undefined: none
    std::vector<int> batch;                               ///< axes that are constant in a block
    Extent row_tiles, key_tiles, planes = 1, pieces = 1;  ///< a piece of work is a tile of rows of a plane
    int warpgroups = 2, stages = 2, raster = 1, blocks_per_multiprocessor = 1;
    int parts = 1;            ///< blocks that share the keys of a tile of rows
    bool in_cluster = false;  ///< and merge what they have summed through their shared memory
    int keys = 0, rows = 0, columns = 0, depth_chunks = 1,
        column_chunks = 1;  ///< keys of a step; rows of a block; the second product's columns
    bool takes_turns = false, hides_exponentials = false, persistent = false;
    bool takes_from_counter = false;  ///< persistent blocks whose pieces are of unequal length
    StreamedTile query, key, value;

    /// UserError at the stream directive.
    [[noreturn]] void refuse(const std::string &cause, const std::string &repair) const;

private:
    class Bind;
    const ScheduledStage &scheduled() const;
    int number(const char *flag, int argument, int otherwise) const;
    void read_schedule();
    void check_parts() const;
    void lay_out();
    void lay_out_axes();
    StreamedOperand of_plane(StreamedOperand operand) const;
    int reads_along(int axis) const;
    void add_map(const StreamedTile &tile);
    Halide::Expr read_tensor(const Halide::Internal::Call *op);
    Halide::Expr read_kept(const Halide::Internal::Call *op) const;

    const ScheduledKernel &schedule;
    const GpuFacts &facts;
};

}  // namespace tilewright
