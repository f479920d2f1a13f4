// Lesson 8: operators of one's own in a model of PyTorch.
//
//     lesson_8_operator [cpu|cuda]        without an argument: the GPU where one answers, else the CPU
//
// lesson_8_operator.py beside this file defines three operators by torch.library, exports a model that uses them and records its outputs.
// The archive holds their names, not their Python. Without more it is refused, with a list of what is missing. Here each is taught in C++,
// in one of two ways: by the expression of an element (a translation), or by operators that are known already (a decomposition). Both are
// fused, scheduled and tuned like any other operator.
#include <cstdio>
#include <map>

#include "apps/api/tilewright.h"
#include "autotune/inputs/compare.h"

using namespace tilewright;

namespace {

const std::string folder = LESSONS;  // where this file lies

/// Operators are named as in the archive: namespace, name, overload. Arguments have the names that their Python has.
void register_operators() {
    register_translation("lessons.soft_clip.default", [](TranslationContext &context, const Node &node) {
        const TensorValue x = context.operand(node, "x");
        const Halide::Expr limit(static_cast<float>(TranslationContext::number(node, "limit")));
        context.define_pointwise(node, [&](const Indices &at) { return math::mul(limit, math::tanh(x(at) / limit)); });
    });
    register_translation("lessons.row_energy.default", [](TranslationContext &context, const Node &node) {
        const TensorValue x = context.operand(node, "x");
        const Halide::Func sum =
            context.add_reduction(node, "", {x.size(0)}, Combiner::sum, {x.size(1)}, [&](const Indices &d, const Indices &r) {
                return std::vector<Halide::Expr>{math::mul(x({d[0], r[0]}), x({d[0], r[0]}))};
            });
        context.define_results(node, {call(sum, TranslationContext::indices(node))});
    });
    register_decomposition("lessons.center.default", [](Builder &b, const Node &node) -> std::vector<Node *> {
        Node *x = node.input("x");
        return {b.sub(x, b.mean(x, {rank_of(x) - 1}, true))};
    });
}

bool is_refused(const std::string &archive, const Options &options) {
    try {
        Model::load(archive, options);
        return false;
    } catch (const UserError &error) {
        std::printf("before: %s\n", error.what());
        return true;
    }
}

}  // namespace

int main(int argc, char **argv) try {
    Options options;
    options.target = argc > 1 ? argv[1] : "";
    options.cache = false;  // this program compiles the same archive with and without the operators
    const std::string archive = folder + "/lesson_8_operator.pt2";
    int wrong = is_refused(archive, options) ? 0 : 1;

    register_operators();
    const Model model = Model::load(archive, options);
    const NamedTensors tensors = read_safetensors(folder + "/lesson_8_operator.io.safetensors");
    const std::map<std::string, HostTensor> recorded(tensors.begin(), tensors.end());
    const std::vector<HostTensor> outputs = model.run(std::vector{recorded.at("in0")});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Comparison comparison = compare(recorded.at("out" + std::to_string(i)), outputs[i]);
        std::printf("out%zu: %s, largest error %.1e\n", i, comparison.mismatch.value_or("as recorded").c_str(), comparison.largest_error);
        wrong += comparison.mismatch ? 1 : 0;
    }
    std::printf("%zu steps, %d wrong\n", model.plan().steps.size(), wrong);
    return wrong == 0 ? 0 : 1;
} catch (const UserError &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
