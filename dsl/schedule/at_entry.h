// Faults of a schedule that no line is to blame for are told at the entry of their kernel.
#pragma once

#include "dsl/error.h"
#include "dsl/schedule/schedule.h"

namespace tilewright {

/// What schedule_error() throws where there is no line: the fault is said of a stage that no directive names.
class UnplacedScheduleError : public UserError {
public:
    using UserError::UserError;
};

/// Calls `work`, which reads the entry's directives. "file:line:1: kernel NAME: …" in front of what has no place of its own.
template<typename Work> auto at_entry(const KernelSchedule &entry, Work &&work) -> decltype(work()) {
    try {
        return work();
    } catch (const UnplacedScheduleError &error) {
        if (entry.location.line == 0) {
            throw;
        }
        throw UserError(fmt::format("{}:{}:1: kernel {}: {}", entry.location.file, entry.location.line, entry.name, error.what()));
    }
}

}  // namespace tilewright
