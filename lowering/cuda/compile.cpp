#include "lowering/cuda/compile.h"

#include <nvrtc.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "dsl/error.h"
#include "lowering/cuda/cubin_cache.h"
#include "lowering/cuda/device_headers.h"
#include "lowering/cuda/emulate.h"
#include "runtime/digest.h"
#include "runtime/dynamic_library.h"
#include "runtime/usable.h"

namespace tilewright {

namespace {

struct Nvrtc {
    DynamicLibrary library{{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}};
    decltype(&nvrtcVersion) version = library["nvrtcVersion"];
    decltype(&nvrtcCreateProgram) create = library["nvrtcCreateProgram"];
    decltype(&nvrtcDestroyProgram) destroy = library["nvrtcDestroyProgram"];
    decltype(&nvrtcCompileProgram) compile = library["nvrtcCompileProgram"];
    decltype(&nvrtcGetProgramLogSize) log_size = library["nvrtcGetProgramLogSize"];
    decltype(&nvrtcGetProgramLog) log = library["nvrtcGetProgramLog"];
    decltype(&nvrtcGetCUBINSize) cubin_size = library["nvrtcGetCUBINSize"];
    decltype(&nvrtcGetCUBIN) cubin = library["nvrtcGetCUBIN"];
    decltype(&nvrtcGetPTXSize) ptx_size = library["nvrtcGetPTXSize"];
    decltype(&nvrtcGetPTX) ptx = library["nvrtcGetPTX"];
    decltype(&nvrtcGetErrorString) error_string = library["nvrtcGetErrorString"];
    /// NVRTC opens it by its name alone, which finds it in a folder that the dynamic linker does not know only if it is open already.
    std::optional<DynamicLibrary> builtins;
    int major = 0;
    std::string version_text;

    Nvrtc() {
        int minor = 0;
        version(&major, &minor);
        version_text = fmt::format("NVRTC {}.{}", major, minor);
        builtins.emplace(std::vector<std::string>{fmt::format("libnvrtc-builtins.so.{}.{}", major, minor)});
    }
};

const Nvrtc &nvrtc() {
    static const Nvrtc instance;
    return instance;
}

class NvrtcProgram {
public:
    explicit NvrtcProgram(const std::string &source) {
        std::vector<const char *> texts;
        std::vector<const char *> names;
        for (const DeviceHeader &header : device_headers()) {
            if (!header.name.starts_with("host/")) {
                names.push_back(header.name.c_str());
                texts.push_back(header.text.c_str());
            }
        }
        check(nvrtc().create(&program_, source.c_str(), "kernel.cu", static_cast<int>(names.size()), texts.data(), names.data()), "create");
    }
    ~NvrtcProgram() { nvrtc().destroy(&program_); }
    NvrtcProgram(const NvrtcProgram &) = delete;
    NvrtcProgram &operator=(const NvrtcProgram &) = delete;

    bool compile(const std::vector<std::string> &options) {
        std::vector<const char *> pointers;
        for (const std::string &option : options) {
            pointers.push_back(option.c_str());
        }
        return nvrtc().compile(program_, static_cast<int>(pointers.size()), pointers.data()) == NVRTC_SUCCESS;
    }
    std::string log() const {
        std::size_t bytes = 0;
        check(nvrtc().log_size(program_, &bytes), "read the log of");
        std::string text(bytes, '\0');
        check(nvrtc().log(program_, text.data()), "read the log of");
        text.resize(text.empty() ? 0 : text.size() - 1);
        return text;
    }
    std::vector<std::byte> cubin() const {
        std::size_t bytes = 0;
        check(nvrtc().cubin_size(program_, &bytes), "read the cubin of");
        std::vector<std::byte> image(bytes);
        check(nvrtc().cubin(program_, reinterpret_cast<char *>(image.data())), "read the cubin of");
        return image;
    }
    std::string ptx() const {
        std::size_t bytes = 0;
        check(nvrtc().ptx_size(program_, &bytes), "read the PTX of");
        std::string text(bytes, '\0');
        check(nvrtc().ptx(program_, text.data()), "read the PTX of");
        return text.c_str();
    }

private:
    static void check(nvrtcResult result, const char *what) {
        internal_assert(result == NVRTC_SUCCESS, "NVRTC could not {} a program: {}", what, nvrtc().error_string(result));
    }
    nvrtcProgram program_ = nullptr;
};

std::string first_error(const std::string &log) {
    for (std::size_t start = 0; start < log.size();) {
        const std::size_t end = std::min(log.find('\n', start), log.size());
        const std::string line = log.substr(start, end - start);
        if (line.find("error") != std::string::npos) {
            return line;
        }
        start = end + 1;
    }
    return log.substr(0, log.find('\n'));
}

std::vector<std::string> compile_flags(const std::string &architecture, const CudaCompileOptions &options) {
    std::vector<std::string> flags = {
        "--gpu-architecture=" + architecture,       "--std=c++17",     "--ptxas-options=-v", "--device-as-default-execution-space",
        fmt::format("--fmad={}", options.contract), "--prec-div=true", "--prec-sqrt=true",   "--ftz=false"};
    if (nvrtc().major >= 13) {
        flags.emplace_back("--no-cache");  // what the compiler finds in a cache of its own comes without ptxas' report
    }
    if (options.max_registers > 0) {
        flags.push_back(fmt::format("--maxrregcount={}", options.max_registers));
    }
    if (options.line_info) {
        flags.emplace_back("--generate-line-info");
    }
    return flags;
}

std::string cache_key(const std::string &source, const std::vector<std::string> &flags) {
    Digest digest;
    digest.add("cubin 2").add(nvrtc().version_text).add(source);
    for (const std::string &flag : flags) {
        digest.add(flag);
    }
    return digest.add(device_headers_digest()).hex();
}

void summarise(CompiledCuda &compiled) {
    for (const FunctionResources &f : compiled.functions) {
        CodeObject &code = compiled.code;
        code.registers = std::max(code.registers, f.registers);
        code.spill_stores = std::max(code.spill_stores, f.spill_stores);
        code.spill_loads = std::max(code.spill_loads, f.spill_loads);
        code.shared_bytes = std::max(code.shared_bytes, f.shared_bytes);
        code.stack_bytes = std::max(code.stack_bytes, f.stack_bytes);
    }
}

CompiledCuda source_for_emulation(const std::string &name, const std::string &source) {
    CompiledCuda compiled;
    compiled.code.name = name;
    compiled.code.source = source;
    compiled.code.image.resize(source.size() + 1);
    std::memcpy(compiled.code.image.data(), source.c_str(), source.size() + 1);
    for (const std::string &function : kernel_functions(source)) {
        compiled.functions.push_back({function});
    }
    return compiled;
}

void compile_or_throw(NvrtcProgram &program, const std::string &name, const std::vector<std::string> &flags) {
    if (program.compile(flags)) {
        return;
    }
    const std::string log = program.log();
    // A schedule may leave a thread fewer registers than one instruction takes (launch_bounds).
    if (const std::size_t at = log.find("Insufficient registers"); at != std::string::npos) {
        user_error(
            "kernel {}: its schedule leaves a thread too few registers ({}); give launch_bounds fewer blocks, or make its tiles smaller",
            name, log.substr(at, log.find_first_of(".\n", at) - at));
    }
    internal_error("the emitted CUDA of kernel {} does not compile: {}", name, first_error(log));
}

CachedCubin compile_here(const std::string &name, const std::string &source, const std::vector<std::string> &flags) {
    NvrtcProgram program(source);
    compile_or_throw(program, name, flags);
    return {program.cubin(), parse_ptxas_report(program.log())};
}

CudaCompilerElsewhere elsewhere;

}  // namespace

void compile_cuda_elsewhere(CudaCompilerElsewhere compiler) { elsewhere = std::move(compiler); }

CompiledCuda compile_cuda(const std::string &name, const std::string &source, const std::string &architecture,
                          const CudaCompileOptions &options) {
    if (architecture == emulated_architecture) {
        return source_for_emulation(name, source);
    }
    const std::vector<std::string> flags = compile_flags(architecture, options);
    const std::string key = cache_key(source, flags);
    const CubinCache cache = CubinCache::standard();
    CompiledCuda compiled;
    std::optional<CachedCubin> found = cache.find(key);
    if (!found && elsewhere && flags == compile_flags(architecture, {}) && elsewhere(name, source, architecture)) {
        found = cache.find(key);
    }
    if (found) {
        compiled.code.image = std::move(found->image);
        compiled.functions = std::move(found->functions);
        compiled.from_cache = true;
    } else {
        CachedCubin fresh = compile_here(name, source, flags);
        cache.store(key, fresh);
        compiled.code.image = std::move(fresh.image);
        compiled.functions = std::move(fresh.functions);
    }
    compiled.code.name = name;
    compiled.code.source = source;
    summarise(compiled);
    return compiled;
}

std::string compile_to_ptx(const std::string &name, const std::string &source, const std::string &architecture) {
    internal_assert(architecture.starts_with("sm_"), "there is no PTX for {}", architecture);
    NvrtcProgram program(source);
    compile_or_throw(program, name, compile_flags("compute_" + architecture.substr(3), {}));
    return program.ptx();
}

bool have_cuda_compiler(std::string *why_not) { return is_usable(nvrtc, why_not); }

std::string cuda_compiler_version() { return fmt::format("{} ({})", nvrtc().version_text, nvrtc().library.path()); }

}  // namespace tilewright
