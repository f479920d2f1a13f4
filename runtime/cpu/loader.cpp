#include "runtime/cpu/loader.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <thread>

#include "dsl/error.h"
#include "runtime/cpu/math.h"
#include "runtime/cpu/parallel.h"

extern "C" const char tilewright_halide_runtime_begin[];
extern "C" const char tilewright_halide_runtime_end[];

namespace tilewright {
namespace {

namespace orc = llvm::orc;

std::string text(llvm::Error error) { return llvm::toString(std::move(error)); }

/// What all kernels share: the linker's session, and one library with Halide's runtime, our functions and this process's.
class Linker {
public:
    /// Never destroyed: Halide's worker threads run its code until the process ends.
    static Linker &instance() {
        static auto *linker = new Linker();
        return *linker;
    }

    orc::JITDylib &make_library(const std::string &name) {
        orc::JITDylib &library = session_->createBareJITDylib(fmt::format("{} #{}", name, next_.fetch_add(1)));
        library.addToLinkOrder(*shared_);
        return library;
    }

    void add(orc::JITDylib &library, llvm::StringRef image, const std::string &name) {
        if (auto error = objects_->add(library, llvm::MemoryBuffer::getMemBufferCopy(image, name))) {
            internal_error("the object file of {} cannot be linked: {}", name, text(std::move(error)));
        }
    }

    void *find(orc::JITDylib &library, const std::string &function) {
        auto symbol = session_->lookup({&library}, session_->intern(function));
        if (!symbol) {
            llvm::consumeError(symbol.takeError());
            return nullptr;
        }
        return reinterpret_cast<void *>(symbol->getAddress());
    }

    void remove(orc::JITDylib &library) {
        if (auto error = session_->removeJITDylib(library)) {
            llvm::consumeError(std::move(error));
        }
    }

    orc::JITDylib &shared() { return *shared_; }

private:
    Linker() {
        auto control = orc::SelfExecutorProcessControl::Create();
        if (!control) {
            internal_error("LLVM's linker does not start: {}", text(control.takeError()));
        }
        session_ = std::make_unique<orc::ExecutionSession>(std::move(*control));
        session_->setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
        objects_ =
            std::make_unique<orc::RTDyldObjectLinkingLayer>(*session_, [] { return std::make_unique<llvm::SectionMemoryManager>(); });
        objects_->setAutoClaimResponsibilityForObjectSymbols(true);
        shared_ = &session_->createBareJITDylib("tilewright runtime");
        define_own_functions();
        auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess('\0');
        if (!process) {
            internal_error("this process's symbols cannot be searched: {}", text(process.takeError()));
        }
        shared_->addGenerator(std::move(*process));
        const std::size_t bytes = tilewright_halide_runtime_end - tilewright_halide_runtime_begin;
        add(*shared_, llvm::StringRef(tilewright_halide_runtime_begin, bytes), "Halide's runtime");
        use_direct_single_tasks(find(*shared_, "halide_set_custom_do_par_for"));
    }

    void define_own_functions() {
        orc::SymbolMap symbols;
        for (const RuntimeSymbol &symbol : runtime_symbols()) {
            symbols[session_->intern(symbol.name)] =
                llvm::JITEvaluatedSymbol(llvm::pointerToJITTargetAddress(symbol.address), llvm::JITSymbolFlags::Exported);
        }
        if (auto error = shared_->define(orc::absoluteSymbols(std::move(symbols)))) {
            internal_error("the runtime's functions cannot be defined: {}", text(std::move(error)));
        }
    }

    std::unique_ptr<orc::ExecutionSession> session_;
    std::unique_ptr<orc::RTDyldObjectLinkingLayer> objects_;
    orc::JITDylib *shared_ = nullptr;
    std::atomic<int> next_{0};
};

}  // namespace

struct CpuCode::Library {
    std::string name;
    orc::JITDylib &dylib;

    explicit Library(const std::string &name) : name(name), dylib(Linker::instance().make_library(name)) {}
    ~Library() { Linker::instance().remove(dylib); }
};

CpuCode CpuCode::load(std::span<const std::byte> object, const std::string &name) {
    CpuCode code;
    code.library_ = std::make_shared<Library>(name);
    Linker::instance().add(code.library_->dylib, llvm::StringRef(reinterpret_cast<const char *>(object.data()), object.size()), name);
    return code;
}

CpuFunction CpuCode::function(const std::string &name) const {
    void *address = Linker::instance().find(library_->dylib, name);
    internal_assert(address != nullptr, "the object file of {} has no function {}, or needs a symbol that nobody defines", library_->name,
                    name);
    return reinterpret_cast<CpuFunction>(address);
}

void *halide_runtime_function(const std::string &name) { return Linker::instance().find(Linker::instance().shared(), name); }

void set_cpu_threads(int count) {
    auto *set = reinterpret_cast<int (*)(int)>(halide_runtime_function("halide_set_num_threads"));
    internal_assert(set != nullptr, "Halide's runtime has no halide_set_num_threads");
    set(count);
}

}  // namespace tilewright
