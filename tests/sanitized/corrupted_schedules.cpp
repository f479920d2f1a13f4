// A thousand corrupted schedule files: each gives an error on one line or reads as a schedule, and nothing else happens.
#include <doctest/doctest.h>

#include <random>

#include "dsl/error.h"
#include "dsl/schedule/loop_nest.h"
#include "tests/support/schedule_kernels.h"

using namespace tilewright;

namespace {

const std::string sound = R"(tilewright schedule 1
model   bert.pt2  graph 8f3c2a9100000000
target  cuda sm_90a "NVIDIA H200"

kernel softmax  algorithm 5d1e77c0aa00bb11
  fuses mask row_max exp row_sum divide
  covers sum#0 sum#1
  when divide.r <= 1024
    divide.split(c, co, ci, 8).vectorize(ci).gpu_blocks(r).gpu_threads(co)
    x.in(mask).compute_at(divide, r).store_in(shared).async_copy()
    row_sum.split(j, jo, ji, 4).rfactor(ji, v)
    row_sum_partial.compute_at(divide, r).unroll(v)
  else
    divide.tile(r, c, ro, co, ri, ci, 4, 128).fuse(ri, ci, t).gpu_blocks(co, ro)
    row_max.compute_at(divide, co).reduce_across(block).split_blocks(j, 2)
  # 34.4 us
end
)";

std::string corrupted(std::mt19937 &random) {
    static const std::vector<std::string> pieces{"(",
                                                 ")",
                                                 ",",
                                                 ".",
                                                 "\"",
                                                 "\\",
                                                 "#",
                                                 "\n",
                                                 "999999999999999999999",
                                                 "-1",
                                                 "0",
                                                 "divide.",
                                                 "split",
                                                 "c",
                                                 "end\n",
                                                 "kernel k algorithm 0123456789abcdef\n",
                                                 "else\n",
                                                 "x.in(",
                                                 "\xff",
                                                 std::string(1, '\0'),
                                                 std::string(3000, '(')};
    std::string text = sound;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
        const std::size_t place = random() % (text.size() + 1);
        switch (random() % 5) {
            case 0:
                text.resize(place);
                break;
            case 1:
                text.insert(place, pieces[random() % pieces.size()]);
                break;
            case 2:
                text.erase(place, random() % 20);
                break;
            case 3:
                if (place < text.size()) {
                    text[place] = static_cast<char>(text[place] ^ (1 << (random() % 8)));
                }
                break;
            default:
                text.insert(place, text.substr(random() % (text.size() + 1), random() % 200));
                break;
        }
    }
    return text;
}

}  // namespace

TEST_CASE("corrupted files are refused in words or read") {
    std::mt19937 random(7);
    int refused = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::string text = corrupted(random);
        CAPTURE(i);
        try {
            const ScheduleFile file = parse_schedule(text, "f");
            CHECK(print(parse_schedule(print(file), "g")) == print(file));
            for (const KernelSchedule &kernel : file.kernels) {
                check_entry(tests::softmax_axes(), kernel);
            }
        } catch (const UserError &error) {
            ++refused;
            const std::string message = error.what();
            CAPTURE(message);
            CHECK(message.find('\n') == std::string::npos);
            CHECK((message.rfind("f:", 0) == 0 || message.rfind("g:", 0) == 0));
            CHECK(message.find("; ") != std::string::npos);
        }
    }
    CHECK(refused > 500);
}
