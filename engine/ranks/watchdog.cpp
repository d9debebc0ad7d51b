#include "ranks/watchdog.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <limits>

namespace fablint {

namespace {

constexpr auto glance = std::chrono::milliseconds(50);
constexpr double rescue_after_s = 2.0;
constexpr double stage_step_s = 1.0;
constexpr auto own_stop = std::chrono::seconds(1);
constexpr auto last_words = std::chrono::seconds(2);  // until all that wait have said so: the launcher ends them then

using SteadyTime = std::chrono::steady_clock;

[[noreturn]] void end() {
    std::fflush(stderr);
    std::this_thread::sleep_for(last_words);
    _exit(static_cast<int>(Exit::incomplete));
}

double seconds_since(SteadyTime::time_point instant) {
    return std::chrono::duration<double>(SteadyTime::now() - instant).count();
}

}  // namespace

Watchdog::Watchdog(Team& team, double limit_s, double round_s, std::function<void()> rescue)
    : team_(team), limit_s_(limit_s), round_s_(round_s), rescue_(std::move(rescue)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
    over_ = true;
    thread_.join();
}

void Watchdog::watch() {
    Heartbeat::Reading last = team_.heartbeat().read();
    auto since = SteadyTime::now();  // the last progress
    auto heard = since;              // the last progress or answer
    auto glanced = since;
    bool rescued = false;
    while (!over_) {
        std::this_thread::sleep_for(glance);
        // A long gap between two glances: it was this process that stood still, and that time does not count. The time
        // before does: on a busy host a rank that began to wait anew would report after the others have ended.
        const auto gap = SteadyTime::now() - glanced;
        if (gap > own_stop) {
            since += gap;
            heard += gap;
        }
        glanced += gap;
        const Heartbeat::Reading now = team_.heartbeat().read();
        if (now.beats != last.beats) {
            since = SteadyTime::now();
            rescued = false;
        }
        // In a group of many an answer says nothing about the rank that is late.
        const bool in_group = now.phase == Heartbeat::Phase::measuring && now.peer < 0;
        if (now.beats != last.beats || (now.signs != last.signs && !in_group)) heard = SteadyTime::now();
        last = now;
        if (!rescued && seconds_since(since) > rescue_after_s && now.phase != Heartbeat::Phase::busy) {
            rescue_();
            rescued = true;
        }
        if (seconds_since(heard) > patience_s(now)) report(now, seconds_since(heard));
    }
}

double Watchdog::patience_s(const Heartbeat::Reading& reading) const {
    switch (reading.phase) {
        case Heartbeat::Phase::measuring:
            return limit_s_;
        case Heartbeat::Phase::waiting:
            // A group that is stuck speaks first, and is given the time to.
            return limit_s_ + round_s_ + 3.0 + stage_step_s * (reading.stage + 1);
        case Heartbeat::Phase::busy:
            break;
    }
    return std::numeric_limits<double>::infinity();
}

void Watchdog::report(const Heartbeat::Reading& reading, double silent_s) const {
    const bool measuring = reading.phase == Heartbeat::Phase::measuring;
    if (measuring && reading.peer < 0) {
        std::fprintf(stderr, "fablint-engine: stuck: rank %d (%s), round %lld: no message from its group for %.0f s\n",
                     team_.rank(), team_.host_of(team_.rank()).c_str(), static_cast<long long>(reading.round),
                     silent_s);
        end();
    }
    char partner[32] = "none";
    if (measuring) std::snprintf(partner, sizeof partner, "%d", team_.rank());
    std::fprintf(stderr, "fablint-engine: lost: rank %d (%s), round %lld, partner %s: %s for %.0f s\n", reading.peer,
                 team_.host_of(reading.peer).c_str(), static_cast<long long>(reading.round), partner,
                 measuring ? "no message" : "did not come to the next round", silent_s);
    end();
}

}  // namespace fablint
