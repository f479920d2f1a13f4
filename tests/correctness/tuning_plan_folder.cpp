// Folders of plans: those of living searches stay, those of killed ones go.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "autotune/search/plan_folder.h"

using namespace tilewright;
namespace fs = std::filesystem;

TEST_CASE("a folder that a killed search left is removed by the next one, that of a running one is not") {
    const fs::path left = fs::temp_directory_path() / "tilewright-plans-killed";
    fs::create_directories(left);
    std::ofstream(left / "0.plan") << "plan";
    auto running = std::make_unique<PlanFolder>();
    CHECK(!fs::exists(left));
    const fs::path file = running->next();
    std::ofstream(file) << "plan";
    {
        PlanFolder other;
        CHECK(fs::exists(file));
        CHECK(fs::path(other.next()).parent_path() != file.parent_path());
    }
    CHECK(fs::exists(file));
    running.reset();
    CHECK(!fs::exists(file.parent_path()));
}
