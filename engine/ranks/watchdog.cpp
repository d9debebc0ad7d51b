#include "ranks/watchdog.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "ranks/failure_report.hpp"

namespace fablint {

namespace {

constexpr auto poll_interval = std::chrono::milliseconds(50);
constexpr double rescue_after_s = 2.0;
constexpr double stage_step_s = 1.0;
constexpr auto own_stop = std::chrono::seconds(1);
using SteadyTime = std::chrono::steady_clock;

double seconds_since(SteadyTime::time_point instant) {
    return std::chrono::duration<double>(SteadyTime::now() - instant).count();
}

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
    over_ = true;
    thread_.join();
}

void Watchdog::watch() {
    Heartbeat::Reading last = rank_group_.heartbeat().read();
    auto progress = SteadyTime::now();  // the last progress
    auto sign = progress;               // the last progress or reply
    auto polled = progress;
    bool rescued = false;
    while (!over_) {
        std::this_thread::sleep_for(poll_interval);
        // A long gap between two polls means that this process was stopped; the gap does not count as waiting. The time
        // before it counts: otherwise, on a busy host, this rank would report after the others have ended.
        const auto gap = SteadyTime::now() - polled;
        if (gap > own_stop) {
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
        if (!rescued && seconds_since(progress) > rescue_after_s && now.phase != Heartbeat::Phase::busy) {
            rescue_();
            rescued = true;
        }
        if (seconds_since(sign) > limit_for(now)) report(now, seconds_since(sign));
    }
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
    const std::int64_t round = rank_group_.heartbeat().read().round;
    if (!failure.reported)
        print_failure({failure.rank, rank_group_.host_of(failure.rank), round, "none", failure.reason});
    end_incomplete();
}

void Watchdog::report(const Heartbeat::Reading& reading, double silent_s) const {
    become_the_last_thread();
    const bool measuring = reading.phase == Heartbeat::Phase::measuring;
    const std::string seconds = " for " + std::to_string(std::lround(silent_s)) + " s";
    if (measuring && reading.peer < 0) {
        std::fprintf(stderr, "fablint-engine: stalled: rank %d (%s), round %lld: no message from its group%s\n",
                     rank_group_.rank(), rank_group_.host_of(rank_group_.rank()).c_str(),
                     static_cast<long long>(reading.round), seconds.c_str());
    } else {
        const std::string reason = (measuring ? "no message" : "did not come to the next round") + seconds;
        rank_group_.control().announce(reading.peer, reason);
        print_failure({reading.peer, rank_group_.host_of(reading.peer), reading.round,
                       measuring ? std::to_string(rank_group_.rank()) : "none", reason});
    }
    end_incomplete();
}

}  // namespace fablint
