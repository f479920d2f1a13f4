// A process of its own in which candidates run: what crashes or hangs there does not touch the search.
#pragma once

#include <atomic>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <vector>

namespace tilewright {

/// The child ended or did not answer; the message says how.
class ChildFailure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Answers each line with a line. Started when first asked, and again after it ended.
class MeasuringChild {
public:
    /// `command`: the program's path and its arguments.
    explicit MeasuringChild(std::vector<std::string> command) : command_(std::move(command)) {}
    ~MeasuringChild() { stop(); }
    MeasuringChild(const MeasuringChild &) = delete;

    /// Throws ChildFailure after `seconds` without an answer, and where the child ends; it is gone then.
    std::string ask(const std::string &line, double seconds);
    bool is_running() const { return process_ > 0; }
    /// From any thread: kills it, and whoever asks gets a ChildFailure.
    void interrupt();
    /// Ends it; the next question starts another. Says how it ended.
    std::string stop();

private:
    void start();

    std::vector<std::string> command_;
    std::atomic<pid_t> process_ = -1;
    int to_child_ = -1, from_child_ = -1;
    std::string received_;
};

}  // namespace tilewright
