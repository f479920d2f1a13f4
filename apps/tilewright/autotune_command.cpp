#include "apps/tilewright/command.h"
#include "dsl/error.h"

namespace tilewright {

int autotune_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("MODEL.pt2").model_options();
    line.add<std::string>("out", "schedule file to write; by default beside the archive");
    line.add<double>("budget", "seconds; by default until the search is done");
    line.add<std::string>("records", "tuning records; by default in the cache folder");
    line.add<std::string>("inputs", "safetensors file with the inputs in0, in1, …; by default values are drawn");
    line.add<std::string>("sizes", "symbolic sizes to tune for, as s0=8,s1=1024");
    if (!line.parse(arguments)) {
        return success;
    }
    Options options = line.options();
    options.out = line.get<std::string>("out");
    options.budget = line.get<double>("budget");
    options.records = line.get<std::string>("records");
    options.inputs = line.get<std::string>("inputs");
    options.sizes = parse_sizes(line.get<std::string>("sizes"));
    return success;
}

}  // namespace tilewright
