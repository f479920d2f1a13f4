#include <algorithm>
#include <boost/json.hpp>
#include <chrono>

#include "apps/api/model.h"
#include "apps/tilewright/command.h"
#include "apps/tilewright/tensors.h"
#include "dsl/error.h"

namespace tilewright {
namespace {

/// Seconds of single runs, until `seconds` have passed and at least ten runs were made.
std::vector<double> measure(const Model &model, std::span<const HostTensor> inputs, double seconds) {
    using clock = std::chrono::steady_clock;
    for (int i = 0; i < 3; ++i) {
        model.run(inputs);
    }
    std::vector<double> times;
    const auto begin = clock::now();
    while (times.size() < 10 || std::chrono::duration<double>(clock::now() - begin).count() < seconds) {
        const auto start = clock::now();
        model.run(inputs);
        times.push_back(std::chrono::duration<double>(clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    return times;
}

}  // namespace

int bench_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("MODEL.pt2").model_options().input_options();
    line.add<double>("seconds", "how long to measure; default 2");
    line.flag("json", "print one JSON object");
    if (!line.parse(arguments)) {
        return success;
    }
    const std::string archive = line.get<std::string>("MODEL.pt2");
    const double seconds = line.positive_seconds("seconds", 2);
    const auto start = std::chrono::steady_clock::now();
    const Model model = Model::load(archive, line.options());
    const double load = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::vector<HostTensor> inputs = given_or_drawn_inputs(line, model.plan());
    const std::vector<double> times = measure(model, inputs, seconds);
    const SymbolValues sizes = sizes_of(model.plan(), inputs);
    const double median = times[times.size() / 2];
    const std::string target = model.plan().target == TargetKind::cpu ? "cpu" : "cuda " + model.plan().device;
    if (line.flag_given("json")) {
        boost::json::object report{
            {"sizes", boost::json::value_from(sizes)}, {"model", archive},     {"target", target},      {"median_us", median * 1e6},
            {"least_us", times.front() * 1e6},         {"runs", times.size()}, {"load_ms", load * 1e3}, {"from_cache", model.from_cache()}};
        fmt::print("{}\n", boost::json::serialize(report));
    } else {
        fmt::print("{} on {}{}: median {:.1f} us, least {:.1f} us, {} runs; loaded in {:.1f} ms{}\n", archive, target,
                   sizes.empty() ? "" : ", sizes " + to_text(sizes), median * 1e6, times.front() * 1e6, times.size(), load * 1e3,
                   model.from_cache() ? " from the cache" : "");
    }
    return success;
}

}  // namespace tilewright
