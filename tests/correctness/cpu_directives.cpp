// Each directive of the CPU changes Halide's statement as it says, and no value.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "dsl/error.h"
#include "dsl/schedule/builder.h"
#include "lowering/cpu/compile.h"
#include "tests/support/hand_written.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

struct Effect {
    std::string name;
    ScheduleBuilder schedule;
    std::vector<std::string> appears, disappears;  ///< in the statement
};

void check(const HandWritten &h, const Effect &effect) {
    CAPTURE(effect.name);
    const std::string plain = print_cpu_statement(h.kernel, {}), changed = print_cpu_statement(h.kernel, effect.schedule.directives);
    for (const std::string &text : effect.appears) {
        CAPTURE(text);
        CHECK(plain.find(text) == std::string::npos);
        CHECK(changed.find(text) != std::string::npos);
    }
    for (const std::string &text : effect.disappears) {
        CAPTURE(text);
        CHECK(plain.find(text) != std::string::npos);
        CHECK(changed.find(text) == std::string::npos);
    }
    const std::vector<HostTensor> outputs = run_on_cpu(h.kernel, effect.schedule.directives, h.inputs);
    CHECK(largest_error(values_of<float>(outputs[0]), h.expected) <= h.tolerance);
}

template<typename F>
Effect effect(const std::string &name, std::vector<std::string> appears, std::vector<std::string> disappears, F &&edit) {
    Effect result{name, {}, std::move(appears), std::move(disappears)};
    edit(result.schedule);
    return result;
}

}  // namespace

TEST_CASE("loops of a pointwise stage") {
    const HandWritten h = pointwise_chain(6, 40);
    using S = ScheduleBuilder;
    check(h, effect("split", {"for (y_f.s0.d1.o,", "for (y_f.s0.d1.i, 0, 8)"}, {"for (y_f.s0.d1, 0, 40)"},
                    [](S &s) { s["y"].split("d1", "o", "i", 8); }));
    check(h, effect("fuse", {"y_f.s0.d1.all"}, {"for (y_f.s0.d0, 0, 6)"}, [](S &s) { s["y"].fuse("d0", "d1", "all"); }));
    check(h, effect("tile", {"for (y_f.s0.d0.a,", "for (y_f.s0.d1.b,"}, {"for (y_f.s0.d0,"},
                    [](S &s) { s["y"].tile("d0", "d1", "a", "b", "c", "d", 3, 8); }));
    check(h, effect("vectorize", {"ramp(", "float32x8"}, {}, [](S &s) { s["y"].split("d1", "o", "i", 8).vectorize("i"); }));
    check(h, effect("unroll", {}, {"for (y_f.s0.d0,"}, [](S &s) { s["y"].unroll("d0"); }));
    check(h, effect("parallel", {"parallel"}, {}, [](S &s) { s["y"].parallel("d0"); }));
    check(h, effect("compute_root", {"produce sum_f", "float32 * 6 * 40"}, {}, [](S &s) { s["sum"].compute_root(); }));
    check(h, effect("compute_at", {"produce sum_f"}, {}, [](S &s) { s["sum"].compute_at("y", "d0"); }));
    ScheduleBuilder reordered;
    reordered["y"].reorder("d0", "d1");
    const std::string statement = print_cpu_statement(h.kernel, reordered.directives);
    CHECK(statement.find("for (y_f.s0.d1,") < statement.find("for (y_f.s0.d0,"));
}

TEST_CASE("reductions") {
    const HandWritten h = softmax(5, 40);
    using S = ScheduleBuilder;
    check(h, effect("rfactor", {"produce row_sum_partial_f", "float32x8"}, {}, [](S &s) {
              s["row_sum"].split("r0", "o", "i", 8).rfactor("i", "lane");
              s["row_sum_partial"].vectorize("lane").compute_at("row_sum", "d0");
          }));
    check(h, effect("compute_at", {"row_sum_f[0]"}, {}, [](S &s) { s["row_sum"].compute_at("y", "d0"); }));
    check(h, effect("split of a reduction", {"row_max_f.s1.o"}, {"row_max_f.s1.r0"}, [](S &s) { s["row_max"].split("r0", "o", "i", 7); }));
}

TEST_CASE("a product in a tile, with a packed operand") {
    using S = ScheduleBuilder;
    check(linear_relu(20, 40, 12, true), effect("tile", {"produce w_in_dot__f", "float32x16"}, {"float32 * 20 * 40"}, [](S &s) {
              s["y"].tile("d0", "d1", "mo", "no", "mi", "ni", 4, 32).split("ni", "u", "v", 16).vectorize("v");
              s["dot"].compute_at("y", "no").split("d1", "no", "v", 16).vectorize("v").split("d0", "mo", "mi", 4).unroll("mi");
              s["dot"].reorder("v", "no", "mi", "mo", "r0");
              s["w"].in("dot").compute_at("y", "no").reorder("d0", "d1");
          }));
}

TEST_CASE("what does not fit is refused with the directive") {
    const HandWritten h = softmax(5, 40);
    ScheduleBuilder unknown, wrong_place;
    unknown["y"].vectorize("d7");
    CHECK_THROWS_WITH_AS(compile_cpu(h.kernel, unknown.directives), doctest::Contains("stage 'y' has no axis 'd7'"), UserError);
    wrong_place["y"].gpu_blocks("d0");
    CHECK_THROWS_WITH_AS(compile_cpu(h.kernel, wrong_place.directives), doctest::Contains("gpu_blocks means nothing on target cpu"),
                         UserError);
}
