#include "apps/tilewright/command.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "dsl/closest_word.h"
#include "dsl/error.h"
#include "lowering/check_options.h"

namespace tilewright {
namespace po = boost::program_options;

CommandLine::CommandLine(const Command &command) : command_(command), options_("options") {
    options_.add_options()("help,h", po::bool_switch(), "print this text");
}

CommandLine &CommandLine::flag(const char *name, const char *help) {
    options_.add_options()(name, po::bool_switch(), help);
    return *this;
}

CommandLine &CommandLine::positional(const char *name) {
    hidden_.add_options()(name, po::value<std::string>(), "");
    positions_.add(name, 1);
    required_.push_back(name);
    return *this;
}

CommandLine &CommandLine::model_options() {
    add<std::string>("target", "cpu or cuda; by default cuda where a GPU answers, else cpu");
    add<std::string>("arch", "GPU architecture to compile for, as sm_90a; by default the GPU's own");
    add<std::string>("schedule", "schedule file; without one every kernel runs under its default schedule");
    add<int>("jobs", "kernels compiled at once; by default one a core");
    add<std::string>("engines", "libraries that may compute kernels: all, none, or a list of cublaslt,cudnn");
    add<std::string>("fusion", "search, max or none");
    flag("strict", "round every step as PyTorch eager does");
    flag("deterministic", "the same bits on every run");
    flag("no-cache", "neither read nor write the cache of compiled plans");
    return *this;
}

CommandLine &CommandLine::input_options() {
    add<std::string>("inputs", "safetensors file with the inputs in0, in1, …; by default values are drawn");
    add<std::string>("sizes", "symbolic sizes of drawn inputs, as s0=8,s1=1024; by default 64, or the nearest that the model allows");
    return *this;
}

bool CommandLine::parse(const Arguments &arguments) {
    po::options_description all;
    all.add(options_).add(hidden_);
    try {
        po::store(po::command_line_parser(arguments).options(all).positional(positions_).run(), values_);
        po::notify(values_);
    } catch (const po::too_many_positional_options_error &) {
        user_error("{}: too many arguments; usage: {}", command_.name, command_.usage);
    } catch (const po::unknown_option &error) {
        const std::string given = error.get_option_name();
        refuse_unknown(given.substr(0, given.find('=')));
    } catch (const po::error &error) {
        user_error("{}: {}; see `tilewright {} --help`", command_.name, error.what(), command_.name);
    }
    if (values_["help"].as<bool>()) {
        std::ostringstream text;
        text << options_;
        fmt::print("usage: {}\n{}\n\n{}", command_.usage, command_.summary, text.str());
        return false;
    }
    for (const auto &[name, value] : values_) {
        const auto *text = boost::any_cast<std::string>(&value.value());
        if (text != nullptr && text->empty()) {
            user_error("{}: {} is given an empty text; give a value, or leave it out", command_.name,
                       options_.find_nothrow(name, false) ? "--" + name : name);
        }
    }
    for (const std::string &name : required_) {
        if (!values_.contains(name)) {
            user_error("{}: {} is missing; usage: {}", command_.name, name, command_.usage);
        }
    }
    return true;
}

void CommandLine::refuse_unknown(const std::string &option) const {
    std::vector<std::string> known;
    for (const auto &declared : options_.options()) {
        known.push_back("--" + declared->long_name());
    }
    user_error("{}: there is no option {}; {}see `tilewright {} --help`", command_.name, option, did_you_mean(option, known),
               command_.name);
}

double CommandLine::positive_seconds(const std::string &name, double otherwise) const {
    if (!has(name)) {
        return otherwise;
    }
    const double seconds = get<double>(name);
    if (!(seconds > 0) || !std::isfinite(seconds)) {
        user_error("--{} {}: give a number of seconds above 0", name, seconds);
    }
    return seconds;
}

Options CommandLine::options() const {
    Options options;
    options.target = get<std::string>("target");
    options.architecture = get<std::string>("arch");
    options.schedule = get<std::string>("schedule");
    options.jobs = get<int>("jobs");
    if (has("jobs") && options.jobs < 1) {
        user_error("--jobs {}: give a number of 1 or more", options.jobs);
    }
    options.engines = get<std::string>("engines", options.engines);
    options.fusion = get<std::string>("fusion", options.fusion);
    options.strict = flag_given("strict");
    options.deterministic = flag_given("deterministic");
    options.cache = !flag_given("no-cache");
    check_options(options);
    return options;
}

std::map<std::string, std::int64_t> parse_sizes(const std::string &text) {
    std::map<std::string, std::int64_t> sizes;
    std::istringstream items(text);
    for (std::string item; std::getline(items, item, ',');) {
        const std::size_t equals = item.find('=');
        std::int64_t value = 0;
        const char *end = item.data() + item.size();
        const bool has_both = equals != std::string::npos && equals > 0 && equals + 1 < item.size();
        const auto read = has_both ? std::from_chars(item.data() + equals + 1, end, value) : std::from_chars_result{};
        const bool good = read.ptr == end && read.ec == std::errc();
        if (!good || !sizes.emplace(item.substr(0, equals), value).second) {
            user_error("sizes \"{}\": \"{}\" is not of the form s0=8, each symbol once", text, item);
        }
    }
    return sizes;
}

}  // namespace tilewright
