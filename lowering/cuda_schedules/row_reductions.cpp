#include "lowering/cuda_schedules/row_reductions.h"

#include <algorithm>
#include <map>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/combiner.h"

namespace tilewright {

bool reduces_rows(const Stage &stage, const Stage &product) {
    const auto fold = classify(stage) == Form::reduction ? match_fold(stage.func) : std::nullopt;
    if (!fold || fold->combiner == Combiner::general || fold->combiner == Combiner::last || fold->variables.size() != 1 ||
        product.rank() == 0) {
        return false;
    }
    std::vector<Extent> rows = product.extents, own = stage.extents;
    rows.pop_back();
    const auto is_single = [](const Extent &e) { return e == Extent(1); };
    std::erase_if(rows, is_single);
    std::erase_if(own, is_single);
    return own == rows && stage.reduction_extents[0] == product.extents.back();
}

std::set<std::string> stages_after(const Algorithm &algorithm, const std::vector<std::string> &row_reductions) {
    std::set<std::string> after(row_reductions.begin(), row_reductions.end());
    for (const Stage &stage : algorithm.stages) {
        const std::vector<Read> reads = reads_of(stage);
        if (std::any_of(reads.begin(), reads.end(), [&](const Read &read) { return !read.from_input && after.count(read.producer); })) {
            after.insert(stage.name());
        }
    }
    return after;
}

namespace {

/// The values at each place that are made of a product alone.
class ElementValues {
public:
    ElementValues(const Algorithm &algorithm, const std::string &product, const std::vector<std::string> &row_reductions)
        : algorithm_(algorithm), product_(product), late_(stages_after(algorithm, row_reductions)) {
        elements_.insert(product);
        for (const Stage &stage : algorithm.stages) {
            for (const Read &read : reads_of(stage)) {
                if (!read.from_input && elements_.count(read.producer) && !late_.count(stage.name())) {
                    elements_.insert(stage.name());
                }
                readers_[read.producer].insert(stage.name());
            }
        }
    }

    std::vector<std::string> to_keep(const std::vector<std::string> &row_reductions) {
        // What one reduction alone reads is a part of its terms.
        for (auto stage = algorithm_.stages.rbegin(); stage != algorithm_.stages.rend(); ++stage) {
            const std::set<std::string> &readers = readers_[stage->name()];
            const bool is_term =
                readers.size() == 1 && (terms_.count(*readers.begin()) ||
                                        std::find(row_reductions.begin(), row_reductions.end(), *readers.begin()) != row_reductions.end());
            if (is_term && !is_output(stage->name())) {
                terms_.insert(stage->name());
            }
        }
        std::vector<std::string> kept;
        for (const Stage &stage : algorithm_.stages) {
            const std::set<std::string> &readers = readers_[stage.name()];
            const bool read_late = std::any_of(readers.begin(), readers.end(),
                                               [&](const std::string &reader) { return late_.count(reader) || terms_.count(reader); });
            if (elements_.count(stage.name()) && stage.name() != product_ && read_late && !terms_.count(stage.name()) &&
                !is_made_of_stored(stage)) {
                kept.push_back(stage.name());
            }
        }
        return kept;
    }

private:
    bool is_output(const std::string &name) const {
        return std::any_of(algorithm_.outputs.begin(), algorithm_.outputs.end(),
                           [&](const TensorOutput &output) { return output.stage == name; });
    }
    /// What is stored is kept anyway, and a conversion of it costs less than registers of its own.
    bool is_made_of_stored(const Stage &stage) const {
        const std::vector<Read> reads = reads_of(stage);
        return is_output(stage.name()) || (reads.size() == 1 && is_output(reads[0].producer) && classify(stage) == Form::pointwise);
    }

    const Algorithm &algorithm_;
    const std::string &product_;
    const std::set<std::string> late_;
    std::set<std::string> elements_, terms_;
    std::map<std::string, std::set<std::string>> readers_;
};

}  // namespace

std::vector<std::string> values_to_keep(const Algorithm &algorithm, const std::string &product,
                                        const std::vector<std::string> &row_reductions) {
    return ElementValues(algorithm, product, row_reductions).to_keep(row_reductions);
}

}  // namespace tilewright
