// The candidates of a kernel: a library's ways of a product where engines are allowed, atomic additions where bits may vary, each once.
#include <doctest/doctest.h>

#include <set>

#include "autotune/space.h"
#include "dsl/error.h"
#include "lowering/choose_schedules.h"
#include "tests/support/hand_written.h"

using namespace tilewright;

namespace {

const Target h200{TargetKind::cuda, "sm_90a", &gpu_facts("sm_90a")};

std::vector<Directives> candidates(const Kernel &kernel, const Options &options) {
    return first_candidates(kernel, default_schedule(kernel, h200, {}, options.deterministic).variants[0].directives, h200, options);
}
int count(const std::vector<Directives> &candidates, const std::string &text) {
    return static_cast<int>(std::count_if(candidates.begin(), candidates.end(), [&](const Directives &d) { return print(d).find(text) != std::string::npos; }));
}

}  // namespace

TEST_CASE("engines are candidates where the options allow them") {
    const Kernel product = tests::product(64, 32, 64, true).kernel;
    Options options;
    CHECK(count(candidates(product, options), "engine(\"cublaslt\")") == 1);
    CHECK(count(candidates(product, options), "engine(\"cublaslt:3\")") == 1);
    options.engines = "cudnn,cublaslt";
    CHECK(count(candidates(product, options), "engine(") > 1);
    options.engines = "none";
    CHECK(count(candidates(product, options), "engine(") == 0);
    KernelSchedule schedule;
    schedule.variants = {{{}, parse_directives("y.engine(\"cublaslt:2\")", "m.schedule")}};
    CHECK_THROWS_WITH_AS(require_allowed({schedule}, options),
                         "m.schedule:1:3: y.engine(\"cublaslt:2\") is not allowed by --engines none; remove it, or tune with these engines", UserError);
}

TEST_CASE("atomic additions are candidates unless every run must give the same bits") {
    const Kernel scatter = tests::scatter_add(40, 8, 16).kernel;
    Options options;
    CHECK(count(candidates(scatter, options), "atomic()") == 1);
    options.deterministic = true;
    CHECK(count(candidates(scatter, options), "atomic()") == 0);
    KernelSchedule schedule;
    schedule.variants = {{{}, parse_directives("y.atomic()", "m.schedule")}};
    CHECK_THROWS_WITH_AS(require_allowed({schedule}, options), "m.schedule:1:3: y.atomic() gives other bits on every run; remove it, or leave out --deterministic",
                         UserError);
}

TEST_CASE("no candidate stands twice, and the default comes first") {
    for (const Kernel &kernel : {tests::softmax(64, 1024).kernel, tests::pointwise_chain(64, 256).kernel, tests::column_sum(512, 256).kernel}) {
        const std::vector<Directives> list = candidates(kernel, {});
        std::set<std::string> texts;
        for (const Directives &directives : list) {
            texts.insert(print(directives));
        }
        CHECK(texts.size() == list.size());
        CHECK(list.size() > 8);
        CHECK(list[0] == default_schedule(kernel, h200).variants[0].directives);
    }
}
