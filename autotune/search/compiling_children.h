// Compiles CUDA in processes beside this one: within a process NVRTC reads one program at a time.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "autotune/measure/measuring_child.h"
#include "autotune/search/kernel_runner.h"
#include "autotune/search/plan_folder.h"

namespace tilewright {

/// While it lives, compile_cuda() hands programs that are not in the cache to one of `count` children, which leaves the cubin there.
class CompilingChildren {
public:
    CompilingChildren(const std::vector<std::string> &command, int count);
    ~CompilingChildren();
    CompilingChildren(const CompilingChildren &) = delete;

    /// What is being compiled is given up: compile_cuda() throws a UserError there.
    void interrupt();

private:
    bool compile(const std::string &name, const std::string &source, const std::string &architecture);

    std::mutex mutex_;
    std::vector<std::unique_ptr<MeasuringChild>> idle_;
    std::set<MeasuringChild *> busy_;
    int interruptions_ = 0;
    PlanFolder folder_;
};

/// The child's side: the answer to the line "compile NAME ARCHITECTURE FILE" (separated by tabs).
bool is_compile_request(const std::string &line);
void answer_compile_request(const std::string &line);

}  // namespace tilewright
