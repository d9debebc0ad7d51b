#include "ranks/local_ranks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
    // `input`: the end of a pipe that is standard input of rank 0; closed without one.
    LocalRanks(std::map<pid_t, int> ranks, bool supervised, Socket input)
        : ranks_(std::move(ranks)), supervised_(supervised), input_(std::move(input)) {
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
            if (entries[2].revents != 0 && !pass_on_input()) {
                stopping_ = true;
                if (!input_.is_open()) send(SIGINT);
                input_ = Socket();
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

    // False at the end of standard input.
    bool pass_on_input() {
        char text[4096];
        const ssize_t got = read(STDIN_FILENO, text, sizeof text);
        for (ssize_t at = 0; input_.is_open() && at < got;) {
            const ssize_t put = write(input_.fd(), text + at, static_cast<std::size_t>(got - at));
            if (put <= 0) break;  // rank 0 has ended
            at += put;
        }
        return got > 0;
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
    Socket input_;
    Socket signals_;
};

// Standard input without a buffer, which would take what follows.
bool read_all(char* data, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes;) {
        const ssize_t got = read(STDIN_FILENO, data + at, bytes - at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += static_cast<std::size_t>(got);
    }
    return true;
}

std::string read_line() {
    std::string line;
    for (char letter = 0; read_all(&letter, 1) && letter != '\n';) line += letter;
    return line;
}

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
    const std::string token = read_line();
    const std::string length = read_line();
    char* end = nullptr;
    const unsigned long bytes = std::strtoul(length.c_str(), &end, 10);
    if (length.empty() || *end != '\0' || bytes > longest_plan)
        throw usage_error("--supervised: standard input does not begin with a token and the length of a plan");
    std::string plan(bytes, '\0');
    if (!read_all(plan.data(), bytes)) throw usage_error("--supervised: the plan on standard input is incomplete");
    static std::istringstream input;
    input.str(plan);
    std::cin.rdbuf(input.rdbuf());
    return token;
}

int start_local_ranks(const std::vector<int>& ranks, bool supervised, bool serves) {
    if (ranks.size() == 1 && !supervised) return ranks.front();
    const pid_t parent = getpid();
    int ends[2] = {-1, -1};  // of a pipe
    if (supervised && serves && ranks.front() == 0 && pipe2(ends, O_CLOEXEC) != 0)
        throw incomplete_error(std::string("no pipe for rank 0: ") + std::strerror(errno));
    Socket read_end(ends[0]), write_end(ends[1]);
    std::map<pid_t, int> started;
    for (const int rank : ranks) {
        const pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) _exit(static_cast<int>(Exit::incomplete));
            if (rank == 0 && read_end.is_open()) dup2(read_end.fd(), STDIN_FILENO);
            return rank;
        }
        if (pid > 0) started[pid] = rank;
        if (pid > 0) continue;
        const std::string reason = std::strerror(errno);
        for (const auto& [other, of] : started) kill(other, SIGKILL);
        throw incomplete_error("no process for rank " + std::to_string(rank) + ": " + reason);
    }
    read_end = Socket();
    _exit(LocalRanks(std::move(started), supervised, std::move(write_end)).wait());
}

}  // namespace fablint
