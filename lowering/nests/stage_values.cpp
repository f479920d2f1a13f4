#include "lowering/nests/stage_values.h"

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

class StageValues::Rewrite : public hi::IRGraphMutator {
public:
    Rewrite(StageValues &values, const Substitution &environment, int reader, const tile::Buffer *itself)
        : values_(values), environment_(environment), reader_(reader), itself_(itself) {}

private:
    using hi::IRGraphMutator::visit;

    Expr visit(const hi::Variable *op) override {
        auto found = environment_.find(op->name);
        return found == environment_.end() ? Expr(op) : found->second;
    }
    Expr visit(const hi::Call *op) override {
        if (!is_read(op)) {
            return hi::IRGraphMutator::visit(op);
        }
        std::vector<Expr> indices;
        for (const Expr &index : op->args) {
            indices.push_back(simplify_index(mutate(index), values_.nest_.ranges));
        }
        if (op->call_type == hi::Call::Image) {
            return tile::read(values_.use(values_.storage_.input(op->name)), indices);
        }
        if (itself_ && op->name == values_.kernel_.algorithm.stages[reader_].name()) {
            const auto &kept = values_.kept_.at(reader_);
            return tile::read(kept.buffer, kept.place, op->value_index);
        }
        return values_.read_stage(op, indices, reader_);
    }

    StageValues &values_;
    const Substitution &environment_;
    int reader_;
    const tile::Buffer *itself_;
};

StageValues::StageValues(const Kernel &kernel, const Nest &nest, const Placement &placement, const Storage &storage, tile::Launch &launch)
    : kernel_(kernel), numbers_(kernel.algorithm), nest_(nest), placement_(placement), storage_(storage), launch_(launch) {}

Expr StageValues::evaluate(const Expr &e, const Substitution &environment, int reader, const tile::Buffer *itself) {
    return Rewrite(*this, environment, reader, itself).mutate(inline_lets(e));
}

void StageValues::keep(int stage, const tile::Buffer &buffer, std::vector<Expr> place) { kept_[stage] = {buffer, std::move(place), false}; }
void StageValues::keep_tile(int stage, const tile::Buffer &buffer, std::vector<Expr> origin) {
    kept_[stage] = {buffer, std::move(origin), true};
}

const tile::Buffer &StageValues::use(const tile::Buffer &buffer) {
    if (const tile::Buffer *found = launch_.find_buffer(buffer.name)) {
        return *found;
    }
    launch_.buffers.push_back(buffer);
    return launch_.buffers.back();
}

Expr StageValues::read_stage(const hi::Call *call, const std::vector<Expr> &indices, int reader) {
    const Algorithm &algorithm = kernel_.algorithm;
    const int producer = numbers_[call->name];
    internal_assert(producer >= 0, "stage {} reads '{}', which the kernel does not have", algorithm.stages[reader].name(), call->name);
    const Stage &stage = algorithm.stages[producer];
    const Member *member = nest_.find_member(producer);
    if (auto kept = kept_.find(producer); kept != kept_.end() && member) {
        if (kept->second.is_tile) {
            std::vector<Expr> place;
            for (std::size_t i = 0; i < indices.size(); ++i) {
                place.push_back(simplify_index(indices[i] - kept->second.place[i], nest_.ranges));
            }
            return tile::read(kept->second.buffer, place, call->value_index);
        }
        bool same = true;
        for (std::size_t i = 0; i < indices.size() && same; ++i) {
            same = equal_indices(indices[i], member->places[i], nest_.ranges);
        }
        if (same) {
            return tile::read(kept->second.buffer, kept->second.place, call->value_index);
        }
    } else if (placement_.nest_of[producer] >= 0 && !member) {
        return tile::read(use(storage_.of(producer, call->value_index)), indices, 0);
    }
    const hi::Function function = stage.func.function();
    if (function.has_update_definition() || function.has_extern_definition()) {
        user_error(
            "kernel {}: stage '{}' is read by '{}' at a place that another thread computes; compute '{}' at the root or store it in shared "
            "memory",
            kernel_.name, stage.name(), algorithm.stages[reader].name(), stage.name());
    }
    auto &known = expanded_[{producer, call->value_index}];
    if (auto found = known.find(indices); found != known.end()) {
        return found->second;
    }
    Substitution environment;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        environment[function.args()[i]] = indices[i];
    }
    const Expr value = evaluate(function.definition().values().at(call->value_index), environment, producer);
    known.emplace(indices, value);
    return value;
}

}  // namespace tilewright
