#include "lowering/cpu_schedules/vector_axis.h"

#include "dsl/algorithm/expression.h"
#include "lowering/cpu/padded_window.h"

namespace tilewright {

namespace hi = Halide::Internal;

namespace {

constexpr int register_bits = 512;

/// Strides of a tensor or of a kept stage, which lies row-major.
std::vector<Extent> strides_of(const Kernel &kernel, const std::string &producer, bool from_input) {
    if (from_input) {
        const TensorInput *input = kernel.algorithm.find_input(producer);
        return input ? input->meta.strides : std::vector<Extent>{};
    }
    const Stage *stage = kernel.algorithm.find_stage(producer);
    return stage ? contiguous_strides(stage->extents) : std::vector<Extent>{};
}

std::vector<Extent> store_strides(const Kernel &kernel, const Stage &stage) {
    for (const TensorOutput &output : kernel.algorithm.outputs) {
        if (output.stage == stage.name()) {
            return output.meta.strides;
        }
    }
    return contiguous_strides(stage.extents);
}

struct Candidate {
    std::string name;
    bool is_reduction;
    Extent extent;
    int score;
};

int points(std::optional<std::int64_t> stride, int weight) {
    if (stride == 0) {
        return 0;
    }
    return stride == 1 ? weight : -weight;
}

}  // namespace

std::optional<std::int64_t> stride_along(const Kernel &kernel, const Read &read, const std::string &variable) {
    const std::vector<Extent> strides = strides_of(kernel, read.producer, read.from_input);
    std::int64_t total = 0;
    for (std::size_t i = 0; i < read.indices.size() && i < strides.size(); i++) {
        if (!mentions(read.indices[i], variable)) {
            continue;
        }
        // A clamped place moves as the unclamped one does, almost everywhere.
        const std::optional<Affine> affine = as_affine(without_clamp(read.indices[i]), {variable});
        const std::optional<std::int64_t> stride = strides[i].constant();
        if (!affine || affine->terms.empty() || !stride) {
            return std::nullopt;
        }
        total += affine->terms[0].second * *stride;
    }
    return total;
}

int lanes_for(const Extent &extent, int bits) {
    int lanes = register_bits / bits;
    if (const auto constant = extent.constant()) {
        while (lanes > *constant && lanes > 1) {
            lanes /= 2;
        }
    }
    return lanes >= 4 ? lanes : 1;
}

int widest_bits(const KeptStage &stage) {
    int bits = 32;
    for (const Halide::Type &type : stage.stage->func.types()) {
        bits = std::max(bits, type.bits());
    }
    return bits;
}

VectorAxis choose_vector_axis(const Kernel &kernel, const KeptStage &kept, bool with_reductions, int depth) {
    const hi::Function function = kept.stage->func.function();
    std::vector<Candidate> candidates;
    const std::vector<Extent> store = store_strides(kernel, *kept.stage);
    for (int i = 0; i < kept.stage->rank(); i++) {
        if (depth > 0 && kept.anchor_axes[i] >= 0 && kept.anchor_axes[i] < depth) {
            continue;
        }
        const bool last = i + 1 == kept.stage->rank();
        candidates.push_back({function.args()[i], false, kept.stage->extents[i], points(store[i].constant(), 2) + (last ? 1 : 0)});
    }
    if (with_reductions && function.has_update_definition()) {
        const auto &variables = function.update(0).schedule().rvars();
        for (std::size_t i = 0; i < variables.size(); i++) {
            candidates.push_back({variables[i].var, true, kept.stage->reduction_extents[i], 0});
        }
    }
    VectorAxis best;
    int best_score = INT32_MIN;
    for (Candidate &candidate : candidates) {
        const int lanes = lanes_for(candidate.extent, widest_bits(kept));
        if (lanes == 1) {
            continue;
        }
        for (const Read &read : kept.reads) {
            candidate.score += points(stride_along(kernel, read, candidate.name), 3);
        }
        // A short axis wastes what a long one fills.
        const int score = candidate.score * 4 + (lanes >= 8 ? 2 : 0);
        if (score > best_score) {
            best_score = score;
            best = {candidate.name, candidate.is_reduction, candidate.extent, lanes};
        }
    }
    return best;
}

}  // namespace tilewright
