#include "autotune/records.h"

#include <filesystem>
#include <memory>
#include <sqlite3.h>

#include "dsl/error.h"

namespace tilewright {
namespace {

using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt *)>;

Statement prepare(sqlite3 *database, const char *sql) {
    sqlite3_stmt *statement = nullptr;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, nullptr) != SQLITE_OK) {
        user_error("tuning records: {}", sqlite3_errmsg(database));
    }
    return {statement, sqlite3_finalize};
}

void bind(const Statement &statement, int place, const std::string &text) {
    sqlite3_bind_text(statement.get(), place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

void step(sqlite3 *database, const Statement &statement) {
    if (sqlite3_step(statement.get()) != SQLITE_DONE) {
        user_error("tuning records cannot be written: {}", sqlite3_errmsg(database));
    }
}

}  // namespace

TuningRecords::TuningRecords(const std::string &path) : path_(path) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    if (sqlite3_open(path.c_str(), &database_) != SQLITE_OK) {
        const std::string reason = sqlite3_errmsg(database_);
        sqlite3_close(database_);
        user_error("{}: tuning records cannot be opened: {}", path, reason);
    }
    sqlite3_busy_timeout(database_, 10000);
    try {
        execute("CREATE TABLE IF NOT EXISTS measurements (key TEXT PRIMARY KEY, description TEXT, seconds REAL, failure TEXT)");
        execute("CREATE TABLE IF NOT EXISTS searches (key TEXT PRIMARY KEY, budget REAL)");
    } catch (...) {
        sqlite3_close(database_);
        throw;
    }
}

TuningRecords::~TuningRecords() { sqlite3_close(database_); }

void TuningRecords::execute(const char *sql) {
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
        user_error("{}: {}; name another file with --records, or remove this one", path_, sqlite3_errmsg(database_));
    }
}

std::optional<TuningRecord> TuningRecords::find(const std::string &key) {
    const Statement statement = prepare(database_, "SELECT seconds, failure FROM measurements WHERE key = ?");
    bind(statement, 1, key);
    if (sqlite3_step(statement.get()) != SQLITE_ROW) {
        return std::nullopt;
    }
    const auto *failure = reinterpret_cast<const char *>(sqlite3_column_text(statement.get(), 1));
    return TuningRecord{sqlite3_column_double(statement.get(), 0), failure ? failure : ""};
}

void TuningRecords::store(const std::string &key, const std::string &description, const TuningRecord &record) {
    const Statement statement = prepare(database_, "INSERT OR REPLACE INTO measurements VALUES (?, ?, ?, ?)");
    bind(statement, 1, key);
    bind(statement, 2, description);
    sqlite3_bind_double(statement.get(), 3, record.seconds);
    bind(statement, 4, record.failure);
    step(database_, statement);
}

bool TuningRecords::finished(const std::string &search, double budget) {
    const Statement statement = prepare(database_, "SELECT budget FROM searches WHERE key = ?");
    bind(statement, 1, search);
    if (sqlite3_step(statement.get()) != SQLITE_ROW) {
        return false;
    }
    const double spent = sqlite3_column_double(statement.get(), 0);
    return spent == 0 || (budget > 0 && budget <= spent);
}

void TuningRecords::mark_finished(const std::string &search, double budget) {
    const Statement statement = prepare(database_, "INSERT OR REPLACE INTO searches VALUES (?, ?)");
    bind(statement, 1, search);
    sqlite3_bind_double(statement.get(), 2, budget);
    step(database_, statement);
}

}  // namespace tilewright
