#include "ranks/local_ranks.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>

#include "base/errors.hpp"
#include "sockets/socket.hpp"

namespace fablint {

namespace {

constexpr double end_limit_s = 5.0;  // longer than the ranks need to report a failed one
constexpr std::size_t longest_plan = std::size_t{1} << 30;

class LocalRanks {
  public:
    LocalRanks(std::map<pid_t, int> ranks, bool supervised) : ranks_(std::move(ranks)), supervised_(supervised) {
        sigset_t signals;
        sigemptyset(&signals);
        for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGUSR2}) sigaddset(&signals, number);
        sigprocmask(SIG_BLOCK, &signals, nullptr);
        signals_ = Socket(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    }

    int wait() {
        for (reap(); !ranks_.empty(); reap()) {
            pollfd entries[] = {{signals_.fd(), POLLIN, 0},
                                {supervised_ ? STDERR_FILENO : -1, 0, 0},  // POLLERR: no program reads
                                {supervised_ && !stopping_ ? STDIN_FILENO : -1, POLLIN, 0}};
            poll(entries, 3, status_ == 0 ? -1 : 200);
            pass_on_signals();
            if (entries[2].revents != 0 && has_ended(STDIN_FILENO)) {
                stopping_ = true;
                send(SIGINT);
            }
            const bool is_abandoned = (entries[1].revents & (POLLERR | POLLHUP)) != 0;
            if (is_abandoned || (status_ != 0 && SteadyTime::now() > limit_)) send(SIGKILL);
        }
        return status_;
    }

  private:
    void send(int number) const {
        for (const auto& [pid, rank] : ranks_) kill(pid, number);
    }

    void pass_on_signals() {
        signalfd_siginfo info{};
        while (read(signals_.fd(), &info, sizeof info) == sizeof info)
            if (info.ssi_signo != SIGCHLD) send(static_cast<int>(info.ssi_signo));
    }

    static bool has_ended(int fd) {
        char ignored[256];
        return read(fd, ignored, sizeof ignored) <= 0;
    }

    void reap() {
        int status = 0;
        for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            const auto ended = ranks_.find(pid);
            if (ended == ranks_.end()) continue;
            if (WIFSIGNALED(status) && status_ == 0)
                std::fprintf(stderr, "fablint-engine: rank %d was ended by signal %d (%s)\n", ended->second,
                             WTERMSIG(status), strsignal(WTERMSIG(status)));
            const int code = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(Exit::incomplete);
            if (status_ == 0 && code != 0) limit_ = after(end_limit_s);
            status_ = std::max(status_, code);
            ranks_.erase(ended);
        }
    }

    std::map<pid_t, int> ranks_;  // that run
    bool supervised_;
    bool stopping_ = false;
    int status_ = 0;
    SteadyTime::time_point limit_;
    Socket signals_;
};

}  // namespace

std::vector<int> parse_ranks(const std::string& text) {
    const auto is_number = [](const std::string& word) {
        return !word.empty() && word.size() < 8 && word.find_first_not_of("0123456789") == std::string::npos;
    };
    const char* const variable = std::getenv(text.c_str());
    const std::string range = variable != nullptr ? variable : text;
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
    if (!is_number(first) || !is_number(last) || std::stoi(last) < std::stoi(first))
        throw usage_error("--rank '" + text + "': give a rank, a range as 4-7, or a variable that holds a rank");
    std::vector<int> ranks;
    for (int rank = std::stoi(first); rank <= std::stoi(last); ++rank) ranks.push_back(rank);
    return ranks;
}

std::string read_supervisor() {
    std::string token, length;
    std::getline(std::cin, token);
    std::getline(std::cin, length);
    char* end = nullptr;
    const unsigned long bytes = std::strtoul(length.c_str(), &end, 10);
    if (length.empty() || *end != '\0' || bytes > longest_plan)
        throw usage_error("--supervised: standard input does not begin with a token and the length of a plan");
    std::string plan(bytes, '\0');
    std::cin.read(plan.data(), static_cast<std::streamsize>(bytes));
    if (static_cast<unsigned long>(std::cin.gcount()) != bytes)
        throw usage_error("--supervised: the plan on standard input is incomplete");
    static std::istringstream input;
    input.str(plan);
    std::cin.rdbuf(input.rdbuf());
    return token;
}

int start_local_ranks(const std::vector<int>& ranks, bool supervised) {
    if (ranks.size() == 1 && !supervised) return ranks.front();
    const pid_t parent = getpid();
    std::map<pid_t, int> started;
    for (const int rank : ranks) {
        const pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) _exit(static_cast<int>(Exit::incomplete));
            return rank;
        }
        if (pid > 0) started[pid] = rank;
        if (pid > 0) continue;
        const std::string reason = std::strerror(errno);
        for (const auto& [other, of] : started) kill(other, SIGKILL);
        throw incomplete_error("no process for rank " + std::to_string(rank) + ": " + reason);
    }
    _exit(LocalRanks(std::move(started), supervised).wait());
}

}  // namespace fablint
