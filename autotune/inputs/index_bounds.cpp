#include "autotune/inputs/index_bounds.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"

namespace tilewright {
namespace {

class BoundFinder {
public:
    BoundFinder(const Algorithm &algorithm, const SymbolValues &symbols) : algorithm_(algorithm), symbols_(symbols) {}

    std::map<std::string, std::int64_t> run() {
        for (const Stage &stage : algorithm_.stages) {
            for (const Read &read : reads_of(stage)) {
                const std::vector<Extent> &extents = sizes_of(read.producer);
                for (std::size_t i = 0; i < std::min(read.indices.size(), extents.size()); ++i) {
                    bound_reads(read.indices[i], extents[i].evaluate(symbols_));
                }
            }
            const Halide::Internal::Function &function = stage.func.function();
            if (function.has_update_definition()) {
                const std::vector<Halide::Expr> places = inline_lets(function.update(0).args());
                for (std::size_t i = 0; i < std::min(places.size(), stage.extents.size()); ++i) {
                    bound_reads(places[i], stage.extents[i].evaluate(symbols_));
                }
            }
        }
        return std::move(bounds_);
    }

private:
    const std::vector<Extent> &sizes_of(const std::string &name) const {
        static const std::vector<Extent> none;
        const TensorInput *input = algorithm_.find_input(name);
        const Stage *stage = algorithm_.find_stage(name);
        return input ? input->meta.sizes : stage ? stage->extents : none;
    }

    /// Whatever `index` is computed from is below `bound`.
    void bound_reads(const Halide::Expr &index, std::int64_t bound) {
        visit_reads(inline_lets(index), [&](const Halide::Internal::Call *call) { bound_producer(call->name, bound); });
    }
    void bound_producer(const std::string &name, std::int64_t bound) {
        if (!visited_.emplace(name, bound).second) {
            return;
        }
        if (const TensorInput *input = algorithm_.find_input(name)) {
            if (is_integer(input->meta.dtype)) {
                const auto known = bounds_.emplace(name, bound).first;
                known->second = std::min(known->second, bound);
            }
        } else if (const Stage *stage = algorithm_.find_stage(name)) {
            for (const Read &read : reads_of(*stage)) {
                bound_producer(read.producer, bound);
            }
        }
    }

    const Algorithm &algorithm_;
    const SymbolValues &symbols_;
    std::map<std::string, std::int64_t> bounds_;
    std::set<std::pair<std::string, std::int64_t>> visited_;
};

}  // namespace

std::map<std::string, std::int64_t> index_bounds(const Algorithm &algorithm, const SymbolValues &symbols) {
    return BoundFinder(algorithm, symbols).run();
}

}  // namespace tilewright
