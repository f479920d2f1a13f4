#include "lowering/nests/nest_work.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/nests/stage_numbers.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

std::set<std::string> NestWork::leaves_at(const std::set<std::string> &axes, std::initializer_list<Level> levels) const {
    std::set<std::string> names;
    for (const tile::Axis &axis : nest.axes) {
        if (!axes.count(axis.name)) {
            continue;
        }
        for (const tile::Leaf &leaf : axis.leaves) {
            if (std::find(levels.begin(), levels.end(), leaf.level) != levels.end()) {
                names.insert(leaf.name);
            }
        }
    }
    return names;
}

std::set<std::string> NestWork::loops_of(const std::set<std::string> &axes) const {
    return leaves_at(axes, {Level::loop, Level::unroll, Level::vector});
}

std::set<std::string> NestWork::serial_loops(const std::set<std::string> &axes) const {
    std::set<std::string> names = leaves_at(axes, {Level::loop});
    for (const NestLoop &loop : nest.loops) {
        if (nest.leaf(loop).level == Level::loop && nest.leaf(loop).extent == Extent(1)) {
            names.insert(nest.leaf(loop).name);
        }
    }
    return names;
}

std::vector<const tile::Leaf *> NestWork::register_leaves(const std::set<std::string> &axes) const {
    std::vector<const tile::Leaf *> result;
    for (const NestLoop &loop : nest.loops) {
        const tile::Leaf &leaf = nest.leaf(loop);
        if (axes.count(nest.axes[loop.axis].name) && (leaf.level == Level::unroll || leaf.level == Level::vector)) {
            result.push_back(&leaf);
        }
    }
    return result;
}

tile::Buffer NestWork::register_buffer(const std::string &name, const std::vector<Halide::Type> &types,
                                       const std::vector<const tile::Leaf *> &leaves) {
    std::vector<Extent> extents;
    for (const tile::Leaf *leaf : leaves) {
        extents.push_back(leaf->extent);
    }
    const tile::Buffer buffer = tile::dense_buffer(unique(name), types, tile::Memory::registers, std::move(extents));
    launch.buffers.push_back(buffer);
    return buffer;
}

std::string NestWork::unique(const std::string &name) {
    std::string candidate = identifier(name);
    for (int i = 2; launch.find_buffer(candidate) || !names_.insert(candidate).second; ++i) {
        candidate = identifier(name + "_" + std::to_string(i));
    }
    return candidate;
}

std::vector<Expr> place_in(const std::vector<const tile::Leaf *> &leaves) {
    std::vector<Expr> place;
    for (const tile::Leaf *leaf : leaves) {
        place.push_back(tile::variable(leaf->name));
    }
    return place;
}

tile::Block over(const std::vector<const tile::Leaf *> &leaves, const std::set<std::string> &around, tile::Block body) {
    for (auto leaf = leaves.rbegin(); leaf != leaves.rend(); ++leaf) {
        if (!around.count((*leaf)->name)) {
            tile::For loop{(*leaf)->name, (*leaf)->extent, (*leaf)->level, std::move(body)};
            body = {tile::Statement{std::move(loop)}};
        }
    }
    return body;
}

std::vector<Expr> NestWork::guards_of(const std::set<std::string> &axes) const {
    std::vector<Expr> guards;
    for (const tile::Axis &axis : nest.axes) {
        if (axes.count(axis.name) && !axis.exact()) {
            const Expr inside = tile::variable(axis.name) < to_halide(axis.extent);
            guards.push_back(axis.shift.defined() ? tile::variable(axis.name) >= 0 && inside : inside);
        }
    }
    for (const auto &[names, condition] : nest.guards) {
        if (std::none_of(names.begin(), names.end(), [&](const std::string &n) { return axes.count(n) > 0; })) {
            continue;
        }
        // What does not vary along some of its axes is wanted where any element along them is inside: guards are upper bounds.
        Substitution first;
        for (const std::string &name : names) {
            if (!axes.count(name)) {
                first[name] = Expr(0);
            }
        }
        const Expr guard = first.empty() ? condition : simplify_index(substitute_variables(condition, first), nest.ranges);
        if (!hi::is_const_one(guard)) {
            guards.push_back(guard);
        }
    }
    return guards;
}

void NestWork::add_single_writer(const std::set<std::string> &axes, std::vector<Expr> &guards) const {
    std::int64_t covered = 1;
    std::vector<std::pair<std::int64_t, std::int64_t>> used;
    for (const tile::Axis &axis : nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            if (leaf.level == Level::thread && axes.count(axis.name)) {
                used.emplace_back(leaf.unit_stride.value(), leaf.unit_stride.value() * leaf.extent.value());
            }
        }
    }
    for (const tile::Axis &axis : nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            if (leaf.level == Level::thread) {
                const std::int64_t begin = leaf.unit_stride.value(), end = begin * leaf.extent.value();
                covered = std::max(covered, end);
                const bool overlaps =
                    std::any_of(used.begin(), used.end(), [&](const auto &u) { return begin < u.second && u.first < end; });
                if (!axes.count(axis.name) && !overlaps) {
                    guards.push_back(tile::variable(leaf.name) == 0);
                    used.emplace_back(begin, end);
                }
            } else if ((leaf.level == Level::grid || leaf.level == Level::cluster) && !axes.count(axis.name)) {
                guards.push_back(tile::variable(leaf.name) == 0);
            }
        }
    }
    std::int64_t reached = 1;
    for (const auto &[begin, end] : used) {
        reached = std::max(reached, end);
    }
    if (reached < nest.threads) {
        guards.push_back(tile::variable("thread.rank") < static_cast<int>(reached));
    }
}

tile::Block guarded(const std::vector<Expr> &guards, tile::Block body) {
    for (auto guard = guards.rbegin(); guard != guards.rend(); ++guard) {
        tile::If statement{*guard, std::move(body)};
        body = {tile::Statement{std::move(statement)}};
    }
    return body;
}

std::vector<int> NestWork::needs_of(const std::vector<Expr> &expressions) const {
    std::vector<int> needs;
    for (const Expr &e : expressions) {
        visit_reads(e, [&](const hi::Call *call) {
            if (split_values.count(call->name)) {
                user_error("kernel {}: '{}' is summed over several blocks and read in the same pass; compute its reader at the root",
                           kernel.name, call->name);
            }
            if (auto found = piece_of.find(call->name); found != piece_of.end()) {
                needs.push_back(found->second);
            }
        });
    }
    std::sort(needs.begin(), needs.end());
    needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    return needs;
}

int NestWork::add_piece(Piece piece) {
    pieces.push_back(std::move(piece));
    return static_cast<int>(pieces.size()) - 1;
}

std::set<std::string> joined(std::set<std::string> a, const std::set<std::string> &b) {
    a.insert(b.begin(), b.end());
    return a;
}

bool NestWork::is_read_in_nest(int producer) const {
    const StageNumbers numbers(kernel.algorithm);
    std::vector<int> pending;
    std::set<int> seen;
    for (const Member &member : nest.members) {
        pending.push_back(member.stage);
    }
    while (!pending.empty()) {
        const int at = pending.back();
        pending.pop_back();
        if (!seen.insert(at).second) {
            continue;
        }
        for (const Read &read : reads_of(stage(at))) {
            if (read.from_input) {
                continue;
            }
            const int index = numbers[read.producer];
            if (index == producer && at != producer) {
                return true;
            }
            if (index >= 0 && placement.nest_of[index] < 0) {
                pending.push_back(index);
            }
        }
    }
    return false;
}

void NestWork::add_stores(const Member &member, const std::vector<Expr> &values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        for (const tile::Buffer &target : storage.targets(member.stage, static_cast<int>(i))) {
            stage_values.use(target);
            Piece piece;
            piece.name = stage(member.stage).name() + " to " + target.name;
            piece.loops = loops_of(member.axes);
            piece.needs = needs_of({values[i]});
            std::vector<Expr> guards = guards_of(member.axes);
            add_single_writer(member.axes, guards);
            const tile::Store store{target.name, member.places, {values[i]}};
            piece.body = [=] { return guarded(guards, {tile::Statement{store}}); };
            add_piece(piece);
        }
    }
}

bool NestWork::reads_memory(const Expr &e) const {
    bool found = false;
    visit_reads(e, [&](const hi::Call *call) {
        const tile::Buffer *buffer = launch.find_buffer(call->name);
        found = found || !buffer || buffer->memory != tile::Memory::registers;
    });
    return found;
}

std::set<std::string> NestWork::axes_of(const Expr &e) const {
    std::set<std::string> axes;
    for (const std::string &name : variables_of(e)) {
        if (nest.find_axis(name)) {
            axes.insert(name);
        }
    }
    return axes;
}

std::vector<tile::Combine::Group> NestWork::thread_groups(const std::set<std::string> &axes) const {
    std::vector<tile::Combine::Group> groups;
    for (const tile::Axis &axis : nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            if (axes.count(axis.name) && leaf.level == Level::thread && leaf.extent.value() > 1) {
                groups.push_back({static_cast<int>(leaf.extent.value()), static_cast<int>(leaf.unit_stride.value())});
            }
        }
    }
    std::sort(groups.begin(), groups.end(), [](const auto &a, const auto &b) { return a.stride < b.stride; });
    std::vector<tile::Combine::Group> merged;
    for (const auto &group : groups) {
        if (!merged.empty() && merged.back().stride * merged.back().size == group.stride) {
            merged.back().size *= group.size;
        } else {
            merged.push_back(group);
        }
    }
    return merged;
}

int NestWork::cluster_blocks(const std::set<std::string> &axes) const {
    int blocks = 1;
    for (const tile::Axis &axis : nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            blocks *= axes.count(axis.name) && leaf.level == Level::cluster ? static_cast<int>(leaf.extent.value()) : 1;
        }
    }
    return blocks;
}

std::string NestWork::cluster_buffer(const tile::Buffer &value, int blocks) {
    tile::Buffer buffer = value;
    buffer.name = value.name + "_cluster";
    buffer.memory = tile::Memory::shared;
    buffer.extents = {blocks};
    buffer.strides = {1};
    if (!launch.find_buffer(buffer.name)) {
        launch.buffers.push_back(buffer);
    }
    return buffer.name;
}

std::string NestWork::exchange_buffer(const tile::Buffer &value, const std::vector<tile::Combine::Group> &groups, std::int64_t values) {
    const bool within_warp = std::all_of(groups.begin(), groups.end(), [](const auto &g) {
        const bool powers = (g.size & (g.size - 1)) == 0 && (g.stride & (g.stride - 1)) == 0;
        return powers && g.size * g.stride <= 32;
    });
    if (within_warp) {
        return "";
    }
    const std::string name = value.name + "_exchange";
    if (!launch.find_buffer(name)) {
        tile::Buffer buffer = value;
        buffer.name = name;
        buffer.memory = tile::Memory::shared;
        const bool neighbours = groups.size() == 1 && groups[0].stride == 1 && groups[0].size % 32 == 0;
        constexpr std::int64_t most_bytes = 32 << 10;
        const bool together = groups.size() == 1 && values * nest.threads * value.types[0].bytes() <= most_bytes;
        buffer.extents = {neighbours ? (nest.threads + 31) / 32 : nest.threads * (together ? values : 1)};
        buffer.strides = {1};
        launch.buffers.push_back(buffer);
    }
    return name;
}

void NestWork::set_combiner(tile::Buffer &buffer, const tile::CombinerDefinition &definition) {
    if (buffer.types.size() > 1) {
        launch.find_buffer(buffer.name)->combiner = buffer.combiner = definition.name;
    }
}

tile::CombinerDefinition combiner_definition(const std::string &name, Combiner combiner, const std::vector<Halide::Type> &types) {
    tile::CombinerDefinition definition;
    definition.name = name;
    definition.kind = combiner;
    definition.types = types;
    std::vector<Expr> left, right;
    for (std::size_t i = 0; i < types.size(); ++i) {
        definition.left.push_back("a" + std::to_string(i));
        definition.right.push_back("b" + std::to_string(i));
        left.push_back(hi::Variable::make(types[i], definition.left.back()));
        right.push_back(hi::Variable::make(types[i], definition.right.back()));
    }
    if (combiner != Combiner::general) {
        definition.result = combine(combiner, left, right);
        definition.identity = identity(combiner, types);
    }
    return definition;
}

}  // namespace tilewright
