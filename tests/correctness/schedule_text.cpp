// Schedule files: print -> parse -> print is the identity, files are written whole, variants are chosen by extent.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "dsl/schedule/builder.h"
#include "dsl/schedule/loop_nest.h"
#include "tests/support/schedule_kernels.h"

using namespace tilewright;

namespace {

const std::string example = R"(tilewright schedule 1
model   bert.pt2  graph 8f3c2a9100000000
target  cuda sm_90a "NVIDIA H200"

kernel softmax  algorithm 5d1e77c0aa00bb11
  fuses mask row_max exp row_sum divide
  covers sum#0 sum#1 "an odd place"
  when divide.r <= 1024 and divide.c > 4
    divide.split(c, co, ci, 8).vectorize(ci).gpu_blocks(r).gpu_threads(co)
    x.in(mask).compute_at(divide, r).store_in(shared).async_copy()
  when divide.r == 7
    divide.gpu_blocks(r)
  else
  # r=8192 c=4096: 34.4 us, 96 % of copy
  #
  # apart after mask: 61.0 us
end

kernel linear_gelu  algorithm 91ab03f200000001
  fuses dot gelu
  dot.engine("cublaslt")
  gelu.tile(m, n, mo, no, mi, ni, 128, 256).gpu_blocks(mo, no)
end
)";

}  // namespace

TEST_CASE("printing what was parsed gives the same text") {
    const ScheduleFile file = parse_schedule(example, "a.schedule");
    CHECK(print(file) == example);
    REQUIRE(file.kernels.size() == 2);
    const KernelSchedule &softmax = file.kernels[0];
    CHECK(softmax.covers == std::vector<std::string>{"sum#0", "sum#1", "an odd place"});
    REQUIRE(softmax.variants.size() == 3);
    CHECK(softmax.variants[0].conditions[1].extent == "divide.c");
    CHECK(softmax.variants[0].directives[4].stage == "x.in(mask)");
    CHECK(softmax.variants[0].directives[0].location.line == 9);
    CHECK(softmax.variants[0].directives[0].location.column == 12);
    CHECK(file.find("linear_gelu") == &file.kernels[1]);
}

TEST_CASE("comments, blank lines and spacing do not matter") {
    const std::string spread =
        "# mine\n\n tilewright  schedule 1 # yes\nmodel m graph 0\ntarget cpu \"x\"\n\nkernel k algorithm 0123456789abcdef # 12 places\n"
        "\tdivide . split ( c , o , i , 8 ) # by eight\r\n  end\n";
    const ScheduleFile file = parse_schedule(spread, "b.schedule");
    CHECK(print(file.kernels[0].variants[0].directives) == "divide.split(c, o, i, 8)\n");
}

TEST_CASE("long lists of directives are broken into lines and read back") {
    ScheduleBuilder s;
    auto divide = s["divide"];
    for (int i = 0; i < 30; ++i) {
        divide.split("c" + std::to_string(i), "c" + std::to_string(i + 1), "i" + std::to_string(i), 2);
    }
    const std::string text = print(s.directives, 2);
    CHECK(parse_directives(text, "c") == s.directives);
    CHECK(text.find('\n') <= 122);
}

TEST_CASE("the C++ form gives the directives of the text") {
    ScheduleBuilder s;
    s["divide"].split("c", "co", "ci", 8).vectorize("ci").gpu_blocks("r").gpu_threads("co");
    s["x"].in("mask").compute_at("divide", "r").store_in("shared");
    s["row_sum"].reduce_across("block");
    CHECK(s.directives == parse_directives("divide.split(c, co, ci, 8).vectorize(ci).gpu_blocks(r).gpu_threads(co)\n"
                                           "x.in(mask).compute_at(divide, r).store_in(shared)\nrow_sum.reduce_across(block)\n",
                                           "c++"));
}

TEST_CASE("a written file is read back, and no other file is left beside it") {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tilewright_schedule_text";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    const std::string path = (folder / "a.schedule").string();
    const ScheduleFile file = parse_schedule(example, "a.schedule");
    write_schedule(file, path);
    write_schedule(file, path);
    CHECK(print(read_schedule(path)) == example);
    CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
    CHECK_THROWS_AS(write_schedule(file, (folder / "none" / "a.schedule").string()), UserError);
    CHECK_THROWS_AS(read_schedule(folder.string()), UserError);
    const std::string data = (folder / "data").string();
    write_file_atomically(data, "no schedule");
    CHECK_THROWS_WITH_AS(write_schedule(file, data), doctest::Contains("the schedule would replace a file that is none"), UserError);
    CHECK(read_file(data) == "no schedule");
    std::filesystem::remove_all(folder);
}

TEST_CASE("the ends of lines and the mark that some editors write do not matter") {
    std::string text = "\xef\xbb\xbf" + example;
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
        text.insert(at, "\r");
    }
    CHECK(print(parse_schedule(text, "edited")) == example);
}

TEST_CASE("the first variant that holds is chosen, at the symbols' values") {
    const std::string text =
        "tilewright schedule 1\nmodel m graph 0\ntarget cpu\nkernel softmax algorithm 0123456789abcdef\n"
        "when divide.c <= 128\nwhen row_sum.j < 1000\nelse\nend\n";
    const KernelSchedule entry = parse_schedule(text, "d").kernels[0];
    const KernelAxes kernel = tests::dynamic_softmax_axes();
    CHECK(select_variant(kernel, entry, {{"s0", 128}}) == 0);
    CHECK(select_variant(kernel, entry, {{"s0", 129}}) == 1);
    CHECK(select_variant(kernel, entry, {{"s0", 1000}}) == 2);
}
