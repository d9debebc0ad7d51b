#include "ranks/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "ranks/failure_report.hpp"
#include "sockets/connect_limit.hpp"

namespace fablint {

namespace {

// A wake-up of this thread delays messages that pass through the kernel: with 20 per second the median latency of 8
// bytes over Soft-RoCE is 10 % higher. The thread therefore wakes seldom, also beside a rank that waits for a long
// window of its peer: when it has to act, and twice within `stage_step_s`, which separates the reports of two ranks.
constexpr double longest_interval_s = 0.5;
constexpr double shortest_interval_s = 0.05;
constexpr double intervals_of_limit = 10.0;
constexpr double rescue_after_s = 2.0;
constexpr double stage_step_s = 1.0;
constexpr double own_stop_s = 1.0;
constexpr double request_after_s = 0.5;  // a rank that is silent for less is not examined for requests
using SteadyTime = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

std::string silence_reason(const Heartbeat::Reading& reading, double silent_s) {
    const bool measuring = reading.phase == Heartbeat::Phase::measuring;
    return (measuring ? "no message for " : "did not come to the next round for ") +
           std::to_string(std::lround(silent_s)) + " s";
}

double seconds_since(SteadyTime::time_point instant) { return Seconds(SteadyTime::now() - instant).count(); }

}  // namespace

void end_without(const RankGroup& rank_group, int rank, std::int64_t round, const std::string& reason) {
    become_the_last_thread();
    rank_group.control().announce(rank, reason);
    print_failure({rank, rank_group.host_of(rank), round, std::to_string(rank_group.rank()), reason});
    end_incomplete();
}

Watchdog::Watchdog(RankGroup& rank_group, double limit_s, double round_s, std::function<void()> rescue)
    : rank_group_(rank_group), limit_s_(limit_s), round_s_(round_s), rescue_(std::move(rescue)), thread_([this] {
          watch();
      }) {
    rank_group.control().on_failure([this](const Failure& failure) { end(failure); });
}

Watchdog::~Watchdog() {
    rank_group_.control().on_failure({});
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
    }
    ended_.notify_one();
    thread_.join();
}

bool Watchdog::sleep(double interval_s) {
    std::unique_lock<std::mutex> lock(mutex_);
    return !ended_.wait_for(lock, Seconds(interval_s), [this] { return over_; });
}

void Watchdog::watch() {
    Heartbeat::Reading last = rank_group_.heartbeat().read();
    auto progress = SteadyTime::now();  // the last progress
    auto sign = progress;               // the last progress or reply
    auto polled = progress;
    bool rescued = false;
    double pause_s = shortest_interval_s;
    while (sleep(pause_s)) {
        // A long gap between two polls means that this process was stopped; the gap does not count as waiting. The time
        // before it counts: otherwise, on a busy host, this rank would report after the others have ended.
        const auto gap = SteadyTime::now() - polled;
        if (Seconds(gap).count() > own_stop_s) {
            progress += gap;
            sign += gap;
        }
        polled += gap;
        const Heartbeat::Reading now = rank_group_.heartbeat().read();
        if (now.beats != last.beats) {
            progress = SteadyTime::now();
            rescued = false;
        }
        // In a group of more than two ranks a reply does not show which rank is late.
        const bool in_group = now.phase == Heartbeat::Phase::measuring && now.peer < 0;
        if (now.beats != last.beats || (now.replies != last.replies && !in_group)) sign = SteadyTime::now();
        last = now;
        silent_s_ = seconds_since(sign);
        const double rescue_in_s = rescue_after_s - seconds_since(progress);
        if (!rescued && rescue_in_s < 0.0 && now.phase != Heartbeat::Phase::busy) {
            rescue_();
            rescued = true;
        }
        look_for_requests(now);
        if (silent_s_ > limit_for(now) || requests_.duration_s() > connect_limit_beside(limit_s_))
            report(now, silent_s_);
        pause_s = until_next_action(now, rescue_in_s);
    }
}

double Watchdog::until_next_action(const Heartbeat::Reading& reading, double rescue_in_s) const {
    const double actions_in_s[] = {rescue_in_s, request_after_s - silent_s_, limit_for(reading) - silent_s_,
                                   connect_limit_beside(limit_s_) - requests_.duration_s()};
    double pause_s = std::min(longest_interval_s, limit_s_ / intervals_of_limit);
    for (const double action_in_s : actions_in_s)
        if (action_in_s > 0.0) pause_s = std::min(pause_s, action_in_s);
    return std::max(pause_s, shortest_interval_s);
}

// Only a rank of a pair knows which peer it requests a connection to.
void Watchdog::look_for_requests(const Heartbeat::Reading& reading) {
    if (is_waiting_for_peer(reading, request_after_s)) {
        requests_.look(SteadyTime::now());
    } else {
        requests_.forget();
    }
    const double waited_s = requests_.duration_s();
    std::string reason;
    if (waited_s > 0.5 * connect_limit_beside(limit_s_)) {
        const std::string& address = requests_.address();  // empty if requests are refused at once
        reason = "no TCP connection to " + rank_group_.host_of(reading.peer) +
                 (address.empty() ? "" : " (" + address + ")") + " for " + std::to_string(std::lround(waited_s)) +
                 " s: requests " + (address.empty() ? "fail at once" : "are not answered");
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    request_reason_ = std::move(reason);
}

double Watchdog::limit_for(const Heartbeat::Reading& reading) const {
    switch (reading.phase) {
        case Heartbeat::Phase::measuring:
            return limit_s_;
        case Heartbeat::Phase::waiting:
            // A stalled group reports first and gets the time to do so.
            return limit_s_ + round_s_ + 3.0 + stage_step_s * (reading.stage + 1);
        case Heartbeat::Phase::busy:
            break;
    }
    return std::numeric_limits<double>::infinity();
}

void Watchdog::end(const Failure& failure) const {
    become_the_last_thread();
    rescue_();
    const Heartbeat::Reading reading = rank_group_.heartbeat().read();
    if (!failure.reported) {
        print_failure({failure.rank, rank_group_.host_of(failure.rank), reading.round, "none", failure.reason});
    } else if (failure.rank == rank_group_.rank() && is_waiting_for_peer(reading, 0.5 * limit_s_)) {
        // Both ends of a cut path report each other: neither knows which of them is cut off. Half of the limit: the
        // other end has just reached it. A rank that was stopped has not waited.
        print_silence(reading, wait_reason(reading, silent_s_));
    }
    end_incomplete();
}

bool Watchdog::is_waiting_for_peer(const Heartbeat::Reading& reading, double longer_than_s) const {
    return reading.phase == Heartbeat::Phase::measuring && reading.peer >= 0 && silent_s_ > longer_than_s;
}

void Watchdog::print_silence(const Heartbeat::Reading& reading, const std::string& reason) const {
    print_failure(
        {reading.peer, rank_group_.host_of(reading.peer), reading.round, std::to_string(rank_group_.rank()), reason});
}

std::string Watchdog::wait_reason(const Heartbeat::Reading& reading, double silent_s) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return request_reason_.empty() ? silence_reason(reading, silent_s) : request_reason_;
}

void Watchdog::report(const Heartbeat::Reading& reading, double silent_s) const {
    become_the_last_thread();
    const bool measuring = reading.phase == Heartbeat::Phase::measuring;
    if (measuring && reading.peer < 0) {
        std::fprintf(stderr, "fablint-engine: stalled: rank %d (%s), round %lld: no message from its group for %ld s\n",
                     rank_group_.rank(), rank_group_.host_of(rank_group_.rank()).c_str(),
                     static_cast<long long>(reading.round), std::lround(silent_s));
    } else {
        const std::string reason = wait_reason(reading, silent_s);
        rank_group_.control().announce(reading.peer, reason);
        print_silence(reading, reason);
    }
    end_incomplete();
}

}  // namespace fablint
