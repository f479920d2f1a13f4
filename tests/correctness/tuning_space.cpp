// The candidates of a kernel: a library's ways of a product where engines are allowed, atomic additions where bits may vary, each once.
#include <doctest/doctest.h>

#include <set>

#include "autotune/search/space.h"
#include "dsl/error.h"
#include "lowering/choose_schedules.h"
#include "runtime/cuda/cublaslt_engine.h"
#include "tests/support/hand_written.h"

using namespace tilewright;

namespace {

const Target h200{TargetKind::cuda, "sm_90a", &gpu_facts("sm_90a")};

std::vector<Directives> candidates(const Kernel &kernel, const Options &options) {
    return SearchSpace(kernel, h200, options).first(default_schedule(kernel, h200, {}, options).variants[0].directives);
}
int count(const std::vector<Directives> &candidates, const std::string &text) {
    return static_cast<int>(
        std::count_if(candidates.begin(), candidates.end(), [&](const Directives &d) { return print(d).find(text) != std::string::npos; }));
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
                         "m.schedule:1:3: y.engine(\"cublaslt:2\") is not allowed by --engines none; remove it, or tune with these engines",
                         UserError);
}

TEST_CASE("large float32 products are cuBLASLt's by default, where it is there and allowed") {
    const auto by_engine = [](const Kernel &kernel, const Options &options) {
        return print(default_schedule(kernel, h200, {}, options).variants[0].directives).find("engine(") != std::string::npos;
    };
    const Kernel large = tests::product(512, 256, 512, true).kernel, small = tests::product(64, 32, 64, true).kernel;
    Options options;
    CHECK(by_engine(large, options) == have_cublaslt());
    CHECK(!by_engine(small, options));
    options.engines = "none";
    CHECK(!by_engine(large, options));
}

TEST_CASE("atomic additions are candidates unless every run must give the same bits") {
    const Kernel scatter = tests::scatter_add(40, 8, 16).kernel;
    Options options;
    CHECK(count(candidates(scatter, options), "atomic()") == 1);
    options.deterministic = true;
    CHECK(count(candidates(scatter, options), "atomic()") == 0);
    KernelSchedule schedule;
    schedule.variants = {{{}, parse_directives("y.atomic()", "m.schedule")}};
    CHECK_THROWS_WITH_AS(require_allowed({schedule}, options),
                         "m.schedule:1:3: y.atomic() gives other bits on every run; remove it, or leave out --deterministic", UserError);
}

TEST_CASE("no candidate stands twice, and the default comes first") {
    for (const Kernel &kernel :
         {tests::softmax(64, 1024).kernel, tests::pointwise_chain(64, 256).kernel, tests::column_sum(512, 256).kernel}) {
        const std::vector<Directives> list = candidates(kernel, {});
        std::set<std::string> texts;
        for (const Directives &directives : list) {
            texts.insert(print(directives));
        }
        CHECK(texts.size() == list.size());
        CHECK(list.size() > 8);
        CHECK(list[0] == default_schedule(kernel, h200, {}, {}).variants[0].directives);
    }
}

TEST_CASE("long rows are shared by clusters of several sizes, and a search goes on from any proposal") {
    const Kernel kernel = tests::softmax(64, 32768).kernel;
    SearchSpace space(kernel, h200, {});
    const std::vector<Directives> first = space.first(default_schedule(kernel, h200, {}, {}).variants[0].directives);
    for (const char *cluster : {"cluster(2, 1)", "cluster(4, 1)", "cluster(8, 1)"}) {
        CHECK_MESSAGE(count(first, cluster) > 0, cluster);
    }
    CHECK(std::any_of(first.begin(), first.end(), [](const Directives &d) { return print(d).find("cluster") == std::string::npos; }));
    // Two steps from the default: the second is around a proposal that the first alone has made.
    std::set<std::string> known;
    for (const Directives &directives : first) {
        known.insert(print(directives));
    }
    const std::vector<Directives> around = space.around(first.back());
    const auto fresh = std::find_if(around.begin(), around.end(), [&](const Directives &d) { return !known.contains(print(d)); });
    REQUIRE(fresh != around.end());
    CHECK(space.around(*fresh).size() > neighbours(*fresh).size());
}

TEST_CASE("rows of odd length are aligned or not") {
    const Kernel kernel = tests::softmax(64, 5003).kernel;
    const std::vector<Directives> list = candidates(kernel, {});
    CHECK(count(list, "align(") > 0);
    CHECK(count(list, "align(") < static_cast<int>(list.size()));
}

TEST_CASE("a sort is tried by other groups of threads, and without selecting first") {
    const std::vector<Directives> list =
        neighbours(parse_directives("s.sort_across(block).preselect().launch_bounds(256, 2)", "m.schedule"));
    for (const char *line :
         {"s.sort_across(warp)\n", "s.sort_across(grid)\n", "s.sort_across(block).launch_bounds(256, 2)\n",
          "s.sort_across(block).preselect().launch_bounds(512, 2)\n", "s.sort_across(block).preselect().launch_bounds(256, 3)\n"}) {
        CHECK_MESSAGE(count(list, line) == 1, line);
    }
}

TEST_CASE("more blocks at once are suggested where registers forbid them, up to half of the registers") {
    const Kernel kernel = tests::softmax(64, 4096).kernel;
    SearchSpace space(kernel, h200, {});
    const Directives start = space.first(default_schedule(kernel, h200, {}, {}).variants[0].directives)[0];
    const std::vector<Directives> suggested = space.suggestions(start, {64, 0, 0, 50});
    REQUIRE(suggested.size() == 3);
    for (const Directives &directives : suggested) {
        const auto bounds =
            std::find_if(directives.begin(), directives.end(), [](const Directive &d) { return d.name == "launch_bounds"; });
        REQUIRE(bounds != directives.end());
        const std::int64_t threads = std::get<std::int64_t>(bounds->arguments[0]), blocks = std::get<std::int64_t>(bounds->arguments[1]);
        CHECK(threads * blocks > 1024);
        CHECK(threads * blocks <= 2048);
    }
    CHECK(space.suggestions(start, {16, 0, 0, 100}).empty());
    CHECK(space.suggestions(parse_directives("sum.parallel(d0)", "test"), {64, 0, 0, 50}).empty());
}

TEST_CASE("the threads of launch bounds follow from the loops") {
    const std::vector<Directives> list = neighbours(parse_directives("y.gpu_threads(thread).launch_bounds(128, 4)", "test"));
    CHECK(list.size() == 3);  // without, and one block more or less
    for (const Directives &directives : list) {
        CHECK((directives.size() == 1 || std::get<std::int64_t>(directives[1].arguments[0]) == 128));
    }
}
