#include "lowering/cuda/emulate.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>

#include "dsl/atomic_file.h"
#include "lowering/cuda/device_headers.h"
#include "lowering/cuda/emulated_blocks.h"
#include "runtime/digest.h"
#include "runtime/plan_cache.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;
using HostArgument = tw::host::Argument;
using tw::host::Dimensions;

const std::string flags = "-std=c++20 -O1 -fPIC -w -ffp-contract=off -fno-strict-aliasing";

std::string compiler() {
    const char *named = std::getenv("CXX");
    return named != nullptr && *named != '\0' ? named : "c++";
}

/// One word for the shell.
std::string shell_word(const fs::path &path) {
    std::string word = "'";
    for (const char c : path.string()) {
        word += c == '\'' ? "'\\''" : std::string(1, c);
    }
    return word + "'";
}

void run_compiler(const std::string &arguments, const fs::path &log) {
    const std::string command = compiler() + " " + flags + " " + arguments + " >" + shell_word(log) + " 2>&1";
    if (std::system(command.c_str()) == 0) {
        return;
    }
    std::ifstream file(log);
    std::string line;
    while (std::getline(file, line) && line.find("error") == std::string::npos) {
    }
    internal_error("the emitted CUDA does not compile for the host: {}; see {}", line, log.string());
}

/// The device headers on disk, with the precompiled launch.h; made once for their content.
fs::path header_folder() {
    static const fs::path folder = [] {
        Digest digest;
        digest.add(flags).add(compiler());
        for (const DeviceHeader &header : device_headers()) {
            digest.add(header.name).add(header.text);
        }
        const std::string cache = PlanCache::standard().folder();
        const fs::path root = cache.empty() ? fs::temp_directory_path() / "tilewright" : fs::path(cache);
        const fs::path place = root / "emulation" / digest.hex();
        if (fs::exists(place / "host" / "launch.h.gch")) {
            return place;
        }
        const fs::path fresh = place.string() + fmt::format(".{}", getpid());
        fs::create_directories(fresh / "host");
        for (const DeviceHeader &header : device_headers()) {
            write_file_atomically((fresh / header.name).string(), header.text);
        }
        std::error_code lost_race;
        fs::rename(fresh, place, lost_race);
        if (lost_race) {
            fs::remove_all(fresh);
        }
        const fs::path image = place / "host" / fmt::format("launch.h.gch.{}", getpid());
        run_compiler(fmt::format("-x c++-header {} -o {}", shell_word(place / "host/launch.h"), shell_word(image)), place / "log");
        fs::rename(image, place / "host" / "launch.h.gch");
        return place;
    }();
    return folder;
}

std::string host_source(const std::vector<KernelSource> &sources) {
    std::string text;
    for (std::size_t i = 0; i < sources.size(); i++) {
        text += fmt::format("namespace kernel_{} {{\n#line 1 \"{}\"\n{}\n", i, sources[i].name, sources[i].text);
        for (const std::string &function : sources[i].functions) {
            text += fmt::format(
                "extern \"C\" void tilewright_emulate_{0}(const tw::host::Argument *arguments) {{\n"
                "    tw::host::invoke({0}, arguments);\n}}\n"
                "extern \"C\" const char *tilewright_signature_{0}() {{ return tw::host::signature({0}); }}\n",
                function);
        }
        text += "}\n";
    }
    return text;
}

fs::path build(const std::vector<KernelSource> &sources) {
    const fs::path headers = header_folder();
    const std::string text = host_source(sources);
    const fs::path library = headers / (Digest().add(text).hex() + ".so");
    if (fs::exists(library)) {
        return library;
    }
    const std::string stem = fmt::format("{}.{}", library.string(), getpid());
    write_file_atomically(stem + ".cpp", text);
    run_compiler(fmt::format("-shared -I{} -include {} {} -o {}", shell_word(headers), shell_word(headers / "host/launch.h"),
                             shell_word(stem + ".cpp"), shell_word(stem + ".so")),
                 stem + ".log");
    fs::rename(stem + ".so", library);
    fs::remove(stem + ".cpp");
    fs::remove(stem + ".log");
    return library;
}

HostArgument to_host(const EmulatedArgument &argument) {
    HostArgument result;
    if (const auto *buffer = std::get_if<EmulatedBuffer>(&argument)) {
        result = {buffer->address, buffer->begin, buffer->end, 0};
    } else if (const auto *pointer = std::get_if<EmulatedPointer>(&argument)) {
        result.address = pointer->address;
    } else if (const auto *scalar = std::get_if<std::int64_t>(&argument)) {
        result.scalar = *scalar;
    } else {
        result.address = const_cast<tw::host::TensorMap *>(&std::get<tw::host::TensorMap>(argument));
    }
    return result;
}

}  // namespace

struct EmulatedModule::Library {
    void *handle = nullptr;
    tw::host::Exports exports{};
};

EmulatedModule::EmulatedModule(const std::vector<KernelSource> &sources) : library_(std::make_unique<Library>()) {
    const fs::path path = build(sources);
    library_->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    internal_assert(library_->handle != nullptr, "emulated kernels cannot be loaded: {}", library_->handle ? "" : dlerror());
    const auto exports = reinterpret_cast<void (*)(tw::host::Exports *)>(dlsym(library_->handle, "tilewright_exports"));
    internal_assert(exports != nullptr, "{} exports nothing", path.string());
    exports(&library_->exports);
    *library_->exports.runtime = &EmulatedBlocks::runtime();
}

std::vector<std::string> kernel_functions(const std::string &source) {
    static const std::regex pattern("__global__\\s+void\\s+(?:__\\w+__\\([^)]*\\)\\s*)*(\\w+)\\s*\\(");
    std::vector<std::string> functions;
    for (std::sregex_iterator match(source.begin(), source.end(), pattern), end; match != end; ++match) {
        functions.push_back((*match)[1]);
    }
    return functions;
}

std::string EmulatedModule::signature(const std::string &function) const {
    const auto text = reinterpret_cast<const char *(*)()>(dlsym(library_->handle, ("tilewright_signature_" + function).c_str()));
    internal_assert(text != nullptr, "no kernel {} was compiled for the emulation", function);
    return text();
}

EmulatedModule::~EmulatedModule() {
    if (library_->handle != nullptr) {
        dlclose(library_->handle);
    }
}

void EmulatedModule::launch(const EmulatedLaunch &launch) const {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    using Trampoline = void (*)(const HostArgument *);
    const auto trampoline = reinterpret_cast<Trampoline>(dlsym(library_->handle, ("tilewright_emulate_" + launch.function).c_str()));
    internal_assert(trampoline != nullptr, "no kernel {} was compiled for the emulation", launch.function);
    std::vector<HostArgument> arguments;
    for (const EmulatedArgument &argument : launch.arguments) {
        arguments.push_back(to_host(argument));
    }
    *library_->exports.block_dimensions = {launch.block[0], launch.block[1], launch.block[2]};
    *library_->exports.grid_dimensions = {launch.grid[0], launch.grid[1], launch.grid[2]};
    const auto [gx, gy, gz] = launch.grid;
    const auto [cx, cy, cz] = launch.cooperative ? launch.grid : launch.cluster;
    for (unsigned z = 0; z < gz; z += cz) {
        for (unsigned y = 0; y < gy; y += cy) {
            for (unsigned x = 0; x < gx; x += cx) {
                std::vector<Dimensions> together;
                for (unsigned i = 0; i < cx * cy * cz; i++) {
                    together.push_back({x + i % cx, y + i / cx % cy, z + i / (cx * cy)});
                }
                EmulatedBlocks(
                    launch, library_->exports, [&] { trampoline(arguments.data()); }, together)
                    .run();
            }
        }
    }
}

}  // namespace tilewright
