// What the parts of a nest's lowering share: its launch so far, the pieces of work, leaves, guards and stores.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dsl/algorithm/combiner.h"
#include "lowering/nests/nest.h"
#include "lowering/nests/segments.h"
#include "lowering/nests/stage_values.h"
#include "lowering/nests/storage.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// A reduction whose terms are spread over blocks: what they leave of it.
struct SplitValue {
    int stage = -1;
    Fold fold;
    tile::CombinerDefinition definition;
    std::vector<tile::Buffer> partials;  ///< one for each element of a tuple: [parts…, extents…]
    Extent part_count = 1;
};

class NestWork {
public:
    NestWork(const Kernel &kernel, const Placement &placement, int index, Storage &storage, const ScheduledKernel &schedule)
        : kernel(kernel),
          placement(placement),
          nest(placement.nests[index]),
          storage(storage),
          schedule(schedule),
          stage_values(kernel, nest, placement, storage, launch) {}

    const Stage &stage(int index) const { return kernel.algorithm.stages[index]; }

    std::set<std::string> leaves_at(const std::set<std::string> &axes, std::initializer_list<tile::Level> levels) const;
    std::set<std::string> loops_of(const std::set<std::string> &axes) const;
    /// Serial loops of these axes. Those of one iteration are among them, whatever their axes: pieces do not part for such a loop.
    std::set<std::string> serial_loops(const std::set<std::string> &axes) const;
    /// Register dimensions of a value that varies along these axes: its unrolled and vector leaves, in nesting order.
    std::vector<const tile::Leaf *> register_leaves(const std::set<std::string> &axes) const;
    std::set<std::string> axes_of(const Halide::Expr &e) const;
    bool reads_memory(const Halide::Expr &e) const;

    std::string unique(const std::string &name);
    tile::Buffer register_buffer(const std::string &name, const std::vector<Halide::Type> &types,
                                 const std::vector<const tile::Leaf *> &leaves);
    void set_combiner(tile::Buffer &buffer, const tile::CombinerDefinition &definition);

    std::vector<Halide::Expr> guards_of(const std::set<std::string> &axes) const;
    /// One thread of one block stores what does not vary along the axes that threads and blocks share out.
    void add_single_writer(const std::set<std::string> &axes, std::vector<Halide::Expr> &guards) const;

    int add_piece(Piece piece);
    /// Pieces whose values the expressions read.
    std::vector<int> needs_of(const std::vector<Halide::Expr> &expressions) const;
    bool is_read_in_nest(int producer) const;
    /// Stores of the member's elements to every buffer that holds them, as pieces of their own.
    void add_stores(const Member &member, const std::vector<Halide::Expr> &values);

    /// Threads that share out these axes, neighbouring groups merged.
    std::vector<tile::Combine::Group> thread_groups(const std::set<std::string> &axes) const;
    /// Blocks of the cluster that share out these axes; 1 for none.
    int cluster_blocks(const std::set<std::string> &axes) const;
    /// Shared memory that threads exchange through, `values` of each at once where there is room; none within a warp.
    std::string exchange_buffer(const tile::Buffer &value, const std::vector<tile::Combine::Group> &groups, std::int64_t values = 1);
    /// Likewise that the blocks of a cluster exchange through: one value of each.
    std::string cluster_buffer(const tile::Buffer &value, int blocks);

    const Kernel &kernel;
    const Placement &placement;
    const Nest &nest;
    Storage &storage;
    const ScheduledKernel &schedule;
    tile::Launch launch;
    StageValues stage_values;
    std::vector<Piece> pieces;
    std::map<std::string, int> piece_of;
    std::vector<std::pair<Halide::Expr, Halide::Expr>> operands;  ///< parts of terms, and the registers that hold them
    std::set<std::string> staged;                                 ///< copies that the schedule puts into shared memory, as they were made
    std::set<std::string> split_values;                           ///< values of which a block has only its part
    std::vector<SplitValue> split_sums;

private:
    std::set<std::string> names_;
};

/// The functor of a reduction or scan, with variables NAME_a0…, NAME_b0….
tile::CombinerDefinition combiner_definition(const std::string &name, Combiner combiner, const std::vector<Halide::Type> &types);

std::vector<Halide::Expr> place_in(const std::vector<const tile::Leaf *> &leaves);
/// Unrolled loops over register dimensions that no loop around runs over.
tile::Block over(const std::vector<const tile::Leaf *> &leaves, const std::set<std::string> &around, tile::Block body);
tile::Block guarded(const std::vector<Halide::Expr> &guards, tile::Block body);
std::set<std::string> joined(std::set<std::string> a, const std::set<std::string> &b);

}  // namespace tilewright
