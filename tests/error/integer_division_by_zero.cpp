// An integer divided by zero is an error on the CPU, as in PyTorch; the model goes on working.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/pipeline.h"
#include "runtime/executor.h"
#include "tests/support/program_text.h"
#include "tests/support/reference.h"

using namespace tilewright;

namespace {

std::unique_ptr<Executor> compiled(const std::string &call, int length = 3) {
    const std::string tensor = " : int64[" + std::to_string(length) + "] = ";
    Options options;
    options.target = "cpu";
    return make_cpu_executor(compile_program(tests::program_from("%a" + tensor + "placeholder\n%b" + tensor + "placeholder\n%y" + tensor +
                                                                 "call_function " + call + "\n%output = output(values=[%y])"),
                                             options)
                                 .plan);
}

}  // namespace

TEST_CASE("each division of integers") {
    for (const char *call :
         {"aten.remainder.Tensor(self=%a, other=%b)", "aten.fmod.Tensor(self=%a, other=%b)", "aten.floor_divide.default(self=%a, other=%b)",
          "aten.div.Tensor_mode(self=%a, other=%b, rounding_mode=\"trunc\")"}) {
        CAPTURE(call);
        const auto executor = compiled(call);
        const HostTensor a = tests::tensor(DType::int64, {3}, {-7, 7, 5});
        CHECK_THROWS_WITH_AS(executor->run_host(std::vector{a, tests::tensor(DType::int64, {3}, {3, 0, 2})}),
                             "an integer is divided by zero; replace the zeros before the division, as PyTorch asks for on the CPU",
                             UserError);
        CHECK_NOTHROW(executor->run_host(std::vector{a, tests::tensor(DType::int64, {3}, {3, -3, 2})}));
    }
}

TEST_CASE("zero divisors are looked for among the elements alone") {
    const auto executor = compiled("aten.floor_divide.default(self=%a, other=%b)", 109);
    CHECK_NOTHROW(executor->run_host(std::vector{tests::tensor(DType::int64, {109}, std::vector<double>(109, 7)),
                                                 tests::tensor(DType::int64, {109}, std::vector<double>(109, 3))}));
}
