#include "autotune/search/records.h"

#include <filesystem>
#include <sqlite3.h>

#include "dsl/error.h"
#include "runtime/plan_cache.h"

namespace tilewright {
namespace {

constexpr int records_layout = 2;  ///< of the tables; files of another one are emptied

/// A prepared statement. Parameters and columns are numbered from where the last one stood.
class Statement {
public:
    Statement(sqlite3 *database, const std::string &path, const char *sql) : database_(database), path_(path) {
        check(sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr));
    }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement &) = delete;

    Statement &bind(const std::string &text) {
        check(sqlite3_bind_text(statement_, ++parameter_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
        return *this;
    }
    Statement &bind(double value) {
        check(sqlite3_bind_double(statement_, ++parameter_, value));
        return *this;
    }
    Statement &bind(int value) {
        check(sqlite3_bind_int(statement_, ++parameter_, value));
        return *this;
    }
    /// Whether there is a row.
    bool step() {
        const int result = sqlite3_step(statement_);
        if (result != SQLITE_ROW && result != SQLITE_DONE) {
            check(result);
        }
        return result == SQLITE_ROW;
    }
    double number() { return sqlite3_column_double(statement_, column_++); }
    int integer() { return sqlite3_column_int(statement_, column_++); }
    std::string text() {
        const auto *bytes = reinterpret_cast<const char *>(sqlite3_column_text(statement_, column_++));
        return bytes ? bytes : "";
    }

private:
    void check(int result) const {
        if (result != SQLITE_OK) {
            user_error("tuning records {}: {}; remove the file, or name another with --records", path_, sqlite3_errmsg(database_));
        }
    }
    sqlite3 *database_;
    const std::string &path_;
    sqlite3_stmt *statement_ = nullptr;
    int parameter_ = 0, column_ = 0;
};

Measurement read_measurement(Statement &row) {
    Measurement measurement;
    measurement.seconds = row.number();
    measurement.failure = row.text();
    measurement.resources.registers = row.integer();
    measurement.resources.spill_bytes = row.integer();
    measurement.resources.shared_bytes = row.integer();
    measurement.resources.occupancy = row.integer();
    return measurement;
}

void bind_measurement(Statement &statement, const Measurement &measurement) {
    const Resources &resources = measurement.resources;
    statement.bind(measurement.seconds).bind(measurement.failure);
    statement.bind(resources.registers).bind(resources.spill_bytes).bind(resources.shared_bytes).bind(resources.occupancy);
}

}  // namespace

std::string Records::standard_path() {
    const std::string folder = PlanCache::standard().folder();
    return folder.empty() ? "" : folder + "/records.sqlite";
}

Records::Records(const std::string &path) : path_(path) {
    if (const std::filesystem::path folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
        std::error_code ignored;  // opening tells
        std::filesystem::create_directories(folder, ignored);
    }
    if (sqlite3_open(path.c_str(), &database_) != SQLITE_OK) {
        const std::string reason = database_ ? sqlite3_errmsg(database_) : "out of memory";
        sqlite3_close(database_);
        user_error("tuning records {}: {}; name another file with --records", path, reason);
    }
    try {
        sqlite3_busy_timeout(database_, 10000);
        execute("PRAGMA journal_mode=WAL");
        execute("PRAGMA synchronous=NORMAL");
        if (layout() != records_layout) {
            execute("BEGIN IMMEDIATE; DROP TABLE IF EXISTS measurements; DROP TABLE IF EXISTS searches; COMMIT");
        }
        execute(
            "CREATE TABLE IF NOT EXISTS measurements (kernel TEXT, directives TEXT, seconds REAL, failure TEXT, registers INTEGER, "
            "spill_bytes INTEGER, shared_bytes INTEGER, occupancy INTEGER, PRIMARY KEY (kernel, directives)) WITHOUT ROWID");
        execute(
            "CREATE TABLE IF NOT EXISTS searches (kernel TEXT PRIMARY KEY, budget REAL, directives TEXT, default_seconds REAL, candidates "
            "INTEGER, "
            "seconds REAL, failure TEXT, registers INTEGER, spill_bytes INTEGER, shared_bytes INTEGER, occupancy INTEGER) WITHOUT ROWID");
        execute(fmt::format("PRAGMA user_version={}", records_layout).c_str());
    } catch (...) {
        sqlite3_close(database_);
        throw;
    }
}

Records::~Records() { sqlite3_close(database_); }

int Records::layout() {
    Statement row(database_, path_, "PRAGMA user_version");
    return row.step() ? row.integer() : 0;
}

void Records::execute(const char *sql) {
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
        user_error("tuning records {}: {}; remove the file, or name another with --records", path_, sqlite3_errmsg(database_));
    }
}

std::optional<Measurement> Records::find(const std::string &kernel, const std::string &directives) {
    Statement row(
        database_, path_,
        "SELECT seconds, failure, registers, spill_bytes, shared_bytes, occupancy FROM measurements WHERE kernel=? AND directives=?");
    row.bind(kernel).bind(directives);
    return row.step() ? std::optional(read_measurement(row)) : std::nullopt;
}

void Records::store(const std::string &kernel, const std::string &directives, const Measurement &measurement) {
    Statement statement(database_, path_, "INSERT OR REPLACE INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    statement.bind(kernel).bind(directives);
    bind_measurement(statement, measurement);
    statement.step();
}

std::optional<FinishedSearch> Records::find_search(const std::string &kernel) {
    Statement row(
        database_, path_,
        "SELECT budget, directives, default_seconds, candidates, seconds, failure, registers, spill_bytes, shared_bytes, occupancy "
        "FROM searches WHERE kernel=?");
    row.bind(kernel);
    if (!row.step()) {
        return std::nullopt;
    }
    FinishedSearch search;
    search.budget = row.number();
    search.directives = row.text();
    search.default_seconds = row.number();
    search.candidates = row.integer();
    search.measurement = read_measurement(row);
    return search;
}

void Records::store_search(const std::string &kernel, const FinishedSearch &search) {
    Statement statement(database_, path_, "INSERT OR REPLACE INTO searches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    statement.bind(kernel).bind(search.budget).bind(search.directives).bind(search.default_seconds).bind(search.candidates);
    bind_measurement(statement, search.measurement);
    statement.step();
}

}  // namespace tilewright
