#include "lowering/nests/placed_reads.h"

#include <sstream>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

std::string PlacedRead::key() const {
    std::ostringstream key;
    key << producer;
    for (const Expr &index : indices) {
        key << "|" << index;
    }
    return key.str();
}

std::vector<PlacedRead> direct_reads(const Expr &e, const Substitution &environment, const VariableRanges &ranges) {
    std::vector<const hi::Call *> calls;
    visit_reads(e, [&](const hi::Call *call) { calls.push_back(call); });
    std::vector<PlacedRead> reads;
    for (const hi::Call *call : calls) {
        PlacedRead read{call->name, {}};
        for (const Expr &index : call->args) {
            read.indices.push_back(simplify_index(substitute_variables(index, environment), ranges));
        }
        reads.push_back(std::move(read));
    }
    return reads;
}

namespace {

class Collector {
public:
    Collector(const Algorithm &algorithm, const std::vector<int> &anchors, const VariableRanges &ranges)
        : algorithm_(algorithm), anchors_(anchors), ranges_(ranges) {}

    void collect(const Expr &e, const Substitution &environment, int reader) {
        for (const PlacedRead &read : direct_reads(e, environment, ranges_)) {
            const int producer = stage_index(algorithm_, read.producer);
            if (producer == reader || !visited_.insert(read.key()).second) {
                continue;
            }
            reads.push_back(read);
            if (producer >= 0 && anchors_[producer] < 0) {
                Substitution inner;
                for (std::size_t i = 0; i < read.indices.size(); ++i) {
                    inner[algorithm_.stages[producer].func.function().args()[i]] = read.indices[i];
                }
                for (const Expr &value : right_hand_sides(algorithm_.stages[producer])) {
                    collect(value, inner, producer);
                }
            }
        }
    }

    std::vector<PlacedRead> reads;

private:
    const Algorithm &algorithm_;
    const std::vector<int> &anchors_;
    const VariableRanges &ranges_;
    std::set<std::string> visited_;
};

}  // namespace

std::vector<PlacedRead> reads_through_inlined(const Algorithm &algorithm, const std::vector<int> &anchors, int index,
                                              const Substitution &environment, const VariableRanges &ranges) {
    Collector collector(algorithm, anchors, ranges);
    for (const Expr &e : definitions_of(algorithm.stages[index])) {
        collector.collect(e, environment, index);
    }
    return std::move(collector.reads);
}

}  // namespace tilewright
