#include <doctest/doctest.h>
#include <random>

#include "dsl/capture/archive.h"
#include "dsl/error.h"
#include "dsl/graph/graph.h"

using namespace tilewright;

namespace {
void refused(const std::string &text, const char *place, const char *cause) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_graph(text, "g.txt"), doctest::Contains(place), UserError);
    CHECK_THROWS_WITH_AS(parse_graph(text, "g.txt"), doctest::Contains(cause), UserError);
}
}  // namespace

TEST_CASE("each mistake in a graph has its line, column and cause") {
    refused("", "g.txt:1:1", "expected 'graph'");
    refused("graph {\n  %x = placeholder\n", "g.txt:3:1", "ends early");
    refused("graph {\n  %x = placeholder\n}\n", "g.txt:4:1", "no output");
    refused("graph {\n  %x : float31[2] = placeholder\n}", "g.txt:2:8", "unknown element type 'float31'");
    refused("graph {\n  %x : float32[2 = placeholder\n}", "g.txt:2:16", "unexpected text");
    refused("graph {\n  %x = placeholder\n  %x = placeholder\n}", "g.txt:3:3", "defined twice");
    refused("graph {\n  %y = call_function aten.relu(self=%x)\n}", "g.txt:2:37", "%x is not defined");
    refused("graph {\n  %y = cal_function aten.relu()\n}", "g.txt:2:8", "unknown instruction 'cal_function'");
    refused("graph {\n  %output = output(values=3)\n}", "g.txt:2:3", "takes one list");
    refused("graph {\n  %output = output(values=[])\n  %x = placeholder\n}", "g.txt:3:3", "after the output");
    refused("graph {\n  %x = call_function f(a=\"b)\n}", "g.txt:2:26", "closing quote");
    refused("graph {\n  %x = call_function f(a=1.2.3)\n}", "g.txt:2:26", "is no number");
    refused("graph {\n  %x = call_function f(a=torch.floaty)\n}", "g.txt:2:26", "torch.floaty");
    refused("graph {\n  %x : (float32[2]) = call_function f()\n  %y = call_function getitem(tuple=%x, index=1)\n}", "g.txt:3:3",
            "no result 1");
    refused("graph {\n  %x : float32[2] strides=[1, 2] = placeholder\n}", "g.txt:2:8", "2 strides for 1 sizes");
    refused("graph {\n  %x = call_function f(a=" + std::string(50, '[') + ")\n}", "g.txt:2:58", "nested more than 32");
}

TEST_CASE("corrupted graph text gives an error with its place or a graph") {
    const std::string whole = print(read_archive("apps/models/special.pt2").graph);
    int refused = 0;
    for (unsigned round = 0; round < 500; ++round) {
        std::mt19937 random(round);
        std::string damaged = whole;
        for (unsigned i = 0; i <= random() % 3; ++i) {
            const std::size_t at = random() % damaged.size();
            switch (random() % 3) {
                case 0:
                    damaged[at] = "()[]{},=:%\"0-.e\nx"[random() % 18];
                    break;
                case 1:
                    damaged.erase(at, random() % 20);
                    break;
                default:
                    damaged.insert(at, whole.substr(random() % whole.size(), random() % 40));
                    break;
            }
        }
        CAPTURE(round);
        try {
            const Graph graph = parse_graph(damaged, "g.txt");
            verify(graph);
            CHECK(print(parse_graph(print(graph))) == print(graph));
        } catch (const UserError &error) {
            CHECK(std::string(error.what()).starts_with("g.txt:"));
            CHECK(std::string(error.what()).find('\n') == std::string::npos);
            ++refused;
        }
    }
    CHECK(refused > 200);
}
