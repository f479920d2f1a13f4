// Kernels of one's own: an algorithm written as Halide Funcs, a schedule, and a function to call on tensors in host memory.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/api/options.h"
#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/math.h"
#include "dsl/schedule/builder.h"
#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "runtime/executor.h"

namespace tilewright {

/// A compiled kernel. Several threads may call one at once; copies share it.
class CompiledFunction {
public:
    explicit CompiledFunction(std::shared_ptr<Executor> executor) : executor_(std::move(executor)) {}
    /// Tensors in the order in which the inputs were declared; outputs in the order of KernelProgram::output.
    std::vector<HostTensor> operator()(std::span<const HostTensor> inputs) const { return executor_->run_host(inputs); }
    Executor &executor() const { return *executor_; }

private:
    std::shared_ptr<Executor> executor_;
};

/// What a kernel computes. Arguments of Funcs follow the order of dimensions: argument 0 is the outermost. Extents may be symbolic.
///
///     KernelProgram program("scale");
///     ImageParam x = program.input("x", DType::float32, {n, 4});
///     Func y("y");  y(i, j) = x(i, j) * 2.0f;
///     program.stage(y, {n, 4});
///     program.output(y);
///     ScheduleBuilder s;  s["y"].vectorize("j").parallel("i");
///     CompiledFunction scale = program.compile(s.directives);
class KernelProgram {
public:
    explicit KernelProgram(std::string name);

    /// A contiguous tensor; `range` of its symbols is all sizes, unless symbol() says otherwise.
    Halide::ImageParam input(const std::string &name, DType dtype, std::vector<Extent> sizes);
    void symbol(const std::string &name, SymbolRange range) { algorithm_.symbols[name] = range; }
    /// A Func with the extents of its arguments and, where it has an update, of its reduction variables. Producers come first.
    void stage(Halide::Func func, std::vector<Extent> extents, std::vector<Extent> reduction_extents = {});
    /// A stage's value, or one element of its tuple, leaves the kernel as a contiguous tensor.
    void output(const Halide::Func &func, int tuple_index = 0);

    const Algorithm &algorithm() const { return algorithm_; }
    /// The kernel with its structural hash. InternalError where the algorithm breaks the conventions of dsl/algorithm/algorithm.h.
    Kernel kernel() const;

    /// Under these directives, or the default schedule of the target. UserError names the directive that does not fit.
    CompiledFunction compile(const Directives &directives, const Options &options = {}) const;
    CompiledFunction compile(const Options &options = {}) const;
    /// Under the entry that a schedule file has for the kernel's algorithm. UserError where there is none.
    CompiledFunction compile(const ScheduleFile &file, const Options &options = {}) const;

private:
    CompiledFunction compile(const KernelSchedule &schedule, const Options &options) const;
    std::string name_;
    Algorithm algorithm_;
};

}  // namespace tilewright
