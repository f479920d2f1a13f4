#include "autotune/measure/measuring_child.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tilewright {

void MeasuringChild::start() {
    int both[2];  // a socket: writing to a child that is gone fails with EPIPE where MSG_NOSIGNAL is given, and raises no signal
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) {
        throw ChildFailure(fmt::format("cannot be started: {}", std::strerror(errno)));
    }
    std::vector<char *> arguments;
    for (std::string &argument : command_) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    const pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ < 0) {
        ::close(both[0]);
        ::close(both[1]);
        throw ChildFailure(fmt::format("cannot be started: {}", std::strerror(errno)));
    }
    if (process_ == 0) {
        ::setpgid(0, 0);  // a Ctrl-C is for the search, which then stops its child
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(127);
        }
        ::dup2(both[1], STDIN_FILENO);
        ::dup2(both[1], STDOUT_FILENO);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
    ::close(both[1]);
    to_child_ = from_child_ = both[0];
    received_.clear();
}

void MeasuringChild::interrupt() {
    if (const pid_t process = process_; process > 0) {
        ::kill(-process, SIGKILL);
        ::kill(process, SIGKILL);
    }
}

std::string MeasuringChild::stop() {
    if (process_ <= 0) {
        return "is not running";
    }
    int status = 0;
    // One that has closed its end is about to be gone by itself; its own status says why.
    for (int tries = 0; tries < 100; ++tries) {
        if (::waitpid(process_, &status, WNOHANG) == process_) {
            break;
        }
        if (tries == 0) {
            ::close(to_child_);
        } else if (tries == 50) {
            interrupt();
            while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
            }
            break;
        }
        ::usleep(1000);
        if (tries == 0) {
            to_child_ = -1;
        }
    }
    if (to_child_ >= 0) {
        ::close(to_child_);
    }
    to_child_ = from_child_ = -1;
    process_ = -1;
    if (WIFSIGNALED(status)) {
        return fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    }
    return fmt::format("ended with status {}", WEXITSTATUS(status));
}

std::string MeasuringChild::ask(const std::string &line, double seconds) {
    if (process_ <= 0) {
        start();
    }
    const std::string request = line + "\n";
    if (::send(to_child_, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
        throw ChildFailure(stop());
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (true) {
        if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
            std::string answer = received_.substr(0, end);
            received_.erase(0, end + 1);
            return answer;
        }
        const double left = std::chrono::duration<double>(deadline - std::chrono::steady_clock::now()).count();
        pollfd waiting{from_child_, POLLIN, 0};
        const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;  // a signal to the search: what is being measured is measured to its end
        }
        if (ready <= 0) {
            interrupt();
            stop();
            throw ChildFailure(fmt::format("took longer than {:.0f} s", seconds));
        }
        char buffer[4096];
        const ssize_t count = ::recv(from_child_, buffer, sizeof buffer, 0);
        if (count <= 0) {
            throw ChildFailure(stop());
        }
        received_.append(buffer, static_cast<std::size_t>(count));
    }
}

}  // namespace tilewright
