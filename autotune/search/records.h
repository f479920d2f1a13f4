// What was ever measured, kept in an SQLite database that several processes may use at once.
#pragma once

#include <optional>
#include <string>

#include "autotune/measure/resources.h"

struct sqlite3;

namespace tilewright {

/// Of one candidate: its time, or why it has none.
struct Measurement {
    double seconds = 0;
    std::string failure;  ///< empty where it ran and its outputs were right
    Resources resources;

    bool is_good() const { return failure.empty(); }
};

/// A search that ran to its end, within its budget.
struct FinishedSearch {
    double budget = 0;       ///< seconds given to the whole model; infinity where there was no limit
    std::string directives;  ///< the schedule that it chose, as text
    Measurement measurement;
    double default_seconds = 0;
    int candidates = 0;  ///< measured
};

class Records {
public:
    /// Opens the file, and makes it with its folder where it is not there. UserError where that fails or it is no such database.
    explicit Records(const std::string &path);
    ~Records();
    Records(const Records &) = delete;
    Records &operator=(const Records &) = delete;

    /// Where records are kept unless another file is named: in the folder of the cache. Empty where there is none.
    static std::string standard_path();

    /// `kernel` names the kernel, its sizes, the machine and the build.
    std::optional<Measurement> find(const std::string &kernel, const std::string &directives);
    void store(const std::string &kernel, const std::string &directives, const Measurement &measurement);

    std::optional<FinishedSearch> find_search(const std::string &kernel);
    void store_search(const std::string &kernel, const FinishedSearch &search);

private:
    void execute(const char *sql);
    int layout();  ///< of the tables in the file
    sqlite3 *database_ = nullptr;
    std::string path_;
};

}  // namespace tilewright
