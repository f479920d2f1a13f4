#include "lowering/cuda/compile.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dsl/error.h"
#include "lowering/cuda/cubin_cache.h"

using namespace tilewright;

TEST_CASE("ptxas' report gives each function's resources") {
    const std::vector<FunctionResources> functions = parse_ptxas_report(
        "ptxas info    : 144 bytes gmem\n"
        "ptxas info    : Compiling entry function 'sorts' for 'sm_90a'\n"
        "ptxas info    : Function properties for sorts\n"
        "    40 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 38 registers, used 1 barriers, 40 bytes cumulative stack size, 6144 bytes smem\n"
        "ptxas info    : Compiling entry function 'plain' for 'sm_90a'\n"
        "ptxas info    : Function properties for plain\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 8 registers, used 0 barriers\n");
    REQUIRE(functions.size() == 2);
    CHECK(functions[0] == FunctionResources{"sorts", 38, 12, 8, 6144, 40});
    CHECK(functions[1] == FunctionResources{"plain", 8, 0, 0, 0, 0});
}

TEST_CASE("a damaged cubin in the cache counts as absent") {
    const std::string folder = std::filesystem::temp_directory_path() / "tilewright_cubin_cache_test";
    std::filesystem::remove_all(folder);
    const CubinCache cache(folder);
    const CachedCubin entry{{std::byte{1}, std::byte{'\n'}, std::byte{3}}, {{"f", 1, 2, 3, 4, 5}}};
    cache.store("key", entry);
    const auto found = cache.find("key");
    REQUIRE(found.has_value());
    CHECK(found->image == entry.image);
    CHECK(found->functions == entry.functions);
    CHECK(!cache.find("other").has_value());
    {
        std::fstream file(folder + "/key", std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-1, std::ios::end);
        file.put('x');
    }
    CHECK(!cache.find("key").has_value());
    std::filesystem::resize_file(folder + "/key", 20);
    CHECK(!cache.find("key").has_value());
    std::filesystem::remove_all(folder);
}

TEST_CASE("NVRTC compiles the device primitives and names the first error") {
    if (std::string why; !have_cuda_compiler(&why)) {
        MESSAGE("skipped: " << why);
        return;
    }
    const std::string source =
        "#include \"tilewright_device.h\"\n"
        "extern \"C\" __global__ void scale(tw::in<tw::bfloat16> x, tw::out<tw::bfloat16> y, float by) {\n"
        "    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 8;\n"
        "    auto v = tw::convert_vector<float>(tw::load<8>(x, i));\n"
        "    for (int k = 0; k < 8; k++) v[k] *= by;\n"
        "    tw::store<8>(y, i, tw::convert_vector<tw::bfloat16>(v));\n"
        "}\n";
    const CompiledCuda compiled = compile_cuda("scale", source, "sm_90a");
    REQUIRE(compiled.functions.size() == 1);
    CHECK(compiled.functions[0].function == "scale");
    CHECK(compiled.code.registers > 8);
    CHECK(compiled.code.registers < 40);
    CHECK(compiled.code.spill_stores == 0);
    CHECK(compiled.code.image.size() > 1000);
    CHECK_THROWS_WITH_AS(compile_cuda("bad", "__global__ void f() { int x = y; }", "sm_90a"),
                         doctest::Contains("kernel bad does not compile: kernel.cu(1): error: identifier \"y\" is undefined"),
                         InternalError);
}
