// Where plans lie that other processes load to measure them.
#pragma once

#include <atomic>
#include <string>

namespace tilewright {

/// A folder of its own for plans, below the system's for temporary files; gone with the object. What processes left that were killed is
/// removed when the next one begins.
class PlanFolder {
public:
    /// UserError where no folder can be made.
    PlanFolder();
    ~PlanFolder();
    PlanFolder(const PlanFolder &) = delete;
    PlanFolder &operator=(const PlanFolder &) = delete;
    std::string next();  ///< path of a new file; from any thread

private:
    std::string path_;
    int lock_ = -1;  ///< held as long as the process lives: tells others that the folder is in use
    std::atomic<int> files_ = 0;
};

}  // namespace tilewright
