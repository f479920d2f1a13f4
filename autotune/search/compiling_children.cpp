#include "autotune/search/compiling_children.h"

#include <spdlog/spdlog.h>

#include "autotune/measure/request_words.h"
#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "lowering/cuda/compile.h"

namespace tilewright {
namespace {

constexpr double longest_compilation = 120;       ///< seconds
constexpr std::size_t largest_source = 64 << 20;  ///< bytes

}  // namespace

CompilingChildren::CompilingChildren(const std::vector<std::string> &command, int count) {
    for (int i = 0; i < count; ++i) {
        idle_.push_back(std::make_unique<MeasuringChild>(command));
    }
    compile_cuda_elsewhere([this](const std::string &name, const std::string &source, const std::string &architecture) {
        return compile(name, source, architecture);
    });
}

CompilingChildren::~CompilingChildren() {
    compile_cuda_elsewhere(nullptr);
    for (const std::unique_ptr<MeasuringChild> &child : idle_) {
        child->interrupt();  // they have nothing to put in order
    }
}

void CompilingChildren::interrupt() {
    const std::lock_guard lock(mutex_);
    ++interruptions_;
    for (MeasuringChild *child : busy_) {
        child->interrupt();
    }
}

bool CompilingChildren::compile(const std::string &name, const std::string &source, const std::string &architecture) {
    std::unique_ptr<MeasuringChild> child;
    int interruptions = 0;
    {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) {
            return false;
        }
        child = std::move(idle_.back());
        idle_.pop_back();
        busy_.insert(child.get());
        interruptions = interruptions_;
    }
    bool done = false;
    try {
        const std::string path = folder_.next();
        write_file_atomically(path, source);
        done = child->ask(fmt::format("compile\t{}\t{}\t{}", name, architecture, path), longest_compilation) == "ok";
    } catch (const std::exception &error) {  // it is compiled here, then, which tells what is wrong
        spdlog::debug("kernel {} was not compiled by a child: {}", name, error.what());
    }
    const std::lock_guard lock(mutex_);
    busy_.erase(child.get());
    idle_.push_back(std::move(child));
    if (!done && interruptions != interruptions_) {
        user_error("kernel {} was not compiled: the search is over", name);
    }
    return done;
}

bool is_compile_request(const std::string &line) { return line.starts_with("compile\t"); }

void answer_compile_request(const std::string &line) {
    const std::vector<std::string> words = split_words(line, '\t');
    if (words.size() != 4) {
        user_error("\"{}\" is no request", line);
    }
    compile_cuda(words[1], read_file(words[3], largest_source), words[2]);
}

}  // namespace tilewright
