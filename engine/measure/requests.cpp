#include "measure/requests.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>

#include "measure/runner.hpp"

namespace fablint {

namespace {

constexpr auto signal_poll = std::chrono::milliseconds(50);  // a signal handler may not notify a waiting thread
constexpr const char* last_line = "end";

}  // namespace

Requests::Requests() : wake_(eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this] { watch(); });
}

Requests::~Requests() {
    const std::uint64_t one = 1;
    if (write(wake_.fd(), &one, sizeof one) != sizeof one) std::terminate();  // an eventfd of value 0 takes any number
    thread_.join();
}

void Requests::watch() {
    for (;;) {
        pollfd entries[] = {{STDIN_FILENO, POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
        poll(entries, 2, -1);
        if (entries[1].revents != 0) return;
        if (entries[0].revents == 0) continue;
        char text[4096];
        const ssize_t got = read(STDIN_FILENO, text, sizeof text);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got > 0) unread_.append(text, static_cast<std::size_t>(got));
        const bool is_last = take_lines();
        if (!is_last && got > 0) continue;
        if (!is_last) request_stop();
        const std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
        changed_.notify_one();
        return;
    }
}

// True after the last line.
bool Requests::take_lines() {
    std::size_t newline = 0;
    for (; (newline = unread_.find('\n')) != std::string::npos; unread_.erase(0, newline + 1)) {
        const std::string line = unread_.substr(0, newline);
        if (!line.empty() && (line != last_line || !block_.empty())) {
            block_ += line + '\n';
            continue;
        }
        if (line == last_line) return true;
        if (block_.empty()) continue;
        const std::lock_guard<std::mutex> lock(mutex_);
        complete_.push_back(std::move(block_));
        block_.clear();
        changed_.notify_one();
    }
    return false;
}

std::string Requests::next(double idle_limit_s) {
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock<std::mutex> lock(mutex_);
    while (!is_stop_requested()) {
        if (!complete_.empty()) {
            std::string request = std::move(complete_.front());
            complete_.pop_front();
            return request;
        }
        if (over_) return "";
        changed_.wait_for(lock, signal_poll);
        const std::chrono::duration<double> idle = std::chrono::steady_clock::now() - begin;
        if (idle_limit_s > 0.0 && complete_.empty() && idle.count() > idle_limit_s) {
            std::fprintf(stderr, "fablint-engine: no request for %g s (--idle-limit)\n", idle_limit_s);
            return "";
        }
    }
    return "";
}

}  // namespace fablint
