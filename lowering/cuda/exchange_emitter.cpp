// The part of BodyEmitter that prints how threads and blocks combine and scan their values.
#include <algorithm>

#include "dsl/error.h"
#include "lowering/cuda/body_emitter.h"
#include "lowering/cuda/expression_printer.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {

using Halide::Expr;

void BodyEmitter::emit(const tile::Combine &s) {
    const tile::Buffer &buffer = *launch_.find_buffer(s.value);
    const std::string target = place(buffer, s.place).text, shared = cuda_name(s.shared);
    for (const tile::Combine::Group &g : s.groups) {
        const bool in_warp = (g.size & (g.size - 1)) == 0 && (g.stride & (g.stride - 1)) == 0 && g.size * g.stride <= 32;
        if (in_warp && g.stride == 1) {
            line(fmt::format("{} = tw::warp_reduce<{}>({}, {}{{}});", target, g.size, target, s.combiner));
        } else if (in_warp) {
            line(fmt::format("{} = tw::warp_reduce_strided<{}, {}>({}, {}{{}});", target, g.size, g.stride, target, s.combiner));
        } else if (g.stride == 1 && g.size % 32 == 0) {  // one of several groups
            line(fmt::format("{} = tw::reduce_across<{}>({}, {}{{}}, {});", target, g.size, target, s.combiner, shared));
        } else {
            line(fmt::format("{} = tw::reduce_strided<{}, {}>({}, {}{{}}, {});", target, g.size, g.stride, target, s.combiner, shared));
        }
    }
    written(s.value);
}

/// A loop over a vector of values that threads far from each other combine: one exchange for all of them. False where it is something else.
bool BodyEmitter::combine_lanes(const tile::For &s) {
    const auto *combine = s.body.size() == 1 ? s.body[0].as<tile::Combine>() : nullptr;
    if (!combine || combine->groups.size() != 1 || combine->cluster_size > 1 || combine->shared.empty() || combine->place.empty() ||
        as_variable(combine->place.back()) != s.variable || !s.extent.is_constant()) {
        return false;
    }
    const tile::Combine::Group &g = combine->groups[0];
    const tile::Buffer &buffer = *launch_.find_buffer(combine->value), &shared = *launch_.find_buffer(combine->shared);
    const bool whole = buffer.types.size() == 1 && !is_packed(buffer) && buffer.extents.back() == s.extent;
    if (g.stride < 32 || launch_.threads % g.size != 0 || !whole || !(shared.extents[0] == s.extent * launch_.threads)) {
        return false;
    }
    tile::Buffer vectors = buffer;
    vectors.extents.pop_back();
    vectors.strides.pop_back();
    const std::string target = place(vectors, {combine->place.begin(), combine->place.end() - 1}).text;
    line(fmt::format("tw::reduce_each_strided<{}, {}, {}>({}, {}{{}}, {});", launch_.threads, g.size, g.stride, target, combine->combiner,
                     cuda_name(combine->shared)));
    written(combine->value);
    return true;
}

/// Whether the threads that combine are neighbours in several warps.
bool BodyEmitter::crosses_warps(const tile::Statement &s) {
    const auto *combine = s.as<tile::Combine>();
    return combine && combine->groups.size() == 1 && combine->groups[0].stride == 1 && combine->groups[0].size % 32 == 0 &&
           combine->groups[0].size > 32;
}

/// Exchanges of one iteration of a loop: runs of combinations that stand together.
BodyEmitter::Exchanges BodyEmitter::exchanges_of(const tile::Block &body) {
    Exchanges count;
    for (std::size_t i = 0; i < body.size(); ++i) {
        const bool together = i > 0 && crosses_warps(body[i - 1]);
        if (crosses_warps(body[i]) && !together) {
            count.of_blocks += 1;
            count.of_clusters += body[i].as<tile::Combine>()->cluster_size > 1;
        }
    }
    return count;
}

/// Values that are combined one after the other share their barriers.
void BodyEmitter::combine_together(const std::vector<const tile::Combine *> &values) {
    const bool again = std::any_of(scopes_.begin() + 1, scopes_.end(), [](const Scope &scope) { return !scope.conditional; });
    const bool clustered = std::any_of(values.begin(), values.end(), [](const tile::Combine *s) { return s->cluster_size > 1; });
    if (again) {  // in a loop: the last iteration may still be reading, unless there was another exchange since
        if (clustered && exchanges_.of_clusters < 2) {
            line("tw::sync_cluster();");
        } else if (exchanges_.of_blocks < 2) {
            line("tw::sync_block();");
        }
    }
    std::vector<std::string> targets, types;
    for (const tile::Combine *s : values) {
        const tile::Buffer &buffer = *launch_.find_buffer(s->value);
        targets.push_back(place(buffer, s->place).text);
        types.push_back(type_of(buffer));
        line(fmt::format("tw::leave_for_block<{}>({}, {}{{}}, {});", s->groups[0].size, targets.back(), s->combiner, cuda_name(s->shared)));
    }
    line("tw::sync_block();");
    for (std::size_t i = 0; i < values.size(); ++i) {
        line(fmt::format("{} = tw::take_from_block<{}, {}>({}{{}}, {});", targets[i], values[i]->groups[0].size, types[i],
                         values[i]->combiner, cuda_name(values[i]->shared)));
        written(values[i]->value);
    }
    if (!clustered) {
        return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        line(fmt::format("tw::leave_for_cluster<{}>({}, {});", values[i]->cluster_size, targets[i], cuda_name(values[i]->cluster_shared)));
    }
    line("tw::sync_cluster();");
    for (std::size_t i = 0; i < values.size(); ++i) {
        line(fmt::format("{} = tw::take_from_cluster<{}, {}>({}{{}}, {});", targets[i], values[i]->cluster_size, types[i],
                         values[i]->combiner, cuda_name(values[i]->cluster_shared)));
    }
}

void BodyEmitter::emit(const tile::ScanThreads &s) {
    const tile::Buffer &buffer = *launch_.find_buffer(s.total);
    const tile::CombinerDefinition &combiner = *launch_.find_combiner(s.combiner);
    std::string identity;
    for (const Expr &e : combiner.identity) {
        identity += (identity.empty() ? "" : ", ") + without_parentheses(text_of(e));
    }
    const std::string type = type_of(buffer), scan = fresh(cuda_name(s.total) + "_scan");
    const std::string at = place(buffer, s.place).text.substr(cuda_name(s.total).size());
    const std::string carry = cuda_name(s.carry) + at;
    const std::string threads = s.group.stride == 1 ? std::to_string(s.group.size) : fmt::format("{}, {}", s.group.size, s.group.stride);
    line(fmt::format("const auto {} = tw::scan_before<{}>({}, {}{{{}}}, {}{{}}, {});", scan, threads, cuda_name(s.total) + at, type,
                     identity, s.combiner, s.shared.empty() ? "nullptr" : cuda_name(s.shared)));
    line(fmt::format("{}{} = {}{{}}({}, {}.exclusive);", cuda_name(s.exclusive), at, s.combiner, carry, scan));
    line(fmt::format("{} = {}{{}}({}, {}.total);", carry, s.combiner, carry, scan));
    written(s.exclusive);
    written(s.carry);
}

}  // namespace tilewright
