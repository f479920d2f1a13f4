// What was measured, in SQLite: a candidate is measured once, and a finished search is marked with its budget.
#pragma once

#include <optional>
#include <string>

struct sqlite3;

namespace tilewright {

/// One candidate's outcome: its time, or why it has none.
struct TuningRecord {
    double seconds = 0;
    std::string failure;  ///< empty where it was measured
};

/// Every write is durable when it returns, so that an interrupted run resumes; several processes may share a file.
class TuningRecords {
public:
    /// UserError where the file cannot be opened or is no database of records.
    explicit TuningRecords(const std::string &path);
    ~TuningRecords();
    TuningRecords(const TuningRecords &) = delete;

    std::optional<TuningRecord> find(const std::string &key);
    void store(const std::string &key, const std::string &description, const TuningRecord &record);

    /// Whether a search under this key was finished with at least this budget (seconds; 0 is without limit).
    bool finished(const std::string &search, double budget);
    void mark_finished(const std::string &search, double budget);

private:
    void execute(const char *sql);
    sqlite3 *database_ = nullptr;
    std::string path_;
};

}  // namespace tilewright
