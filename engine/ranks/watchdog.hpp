// Ends a run in which a rank hangs, and names that rank. A thread beside the measuring one; it makes no MPI calls.
#pragma once

#include <functional>
#include <thread>

#include "ranks/team.hpp"

namespace fablint {

// A rank accuses the one it waits for only if that one does not say that it waits itself (Team::wait asks): so victims
// are not accused. In a group of many nobody knows who is late: each that waits says so, and the one that does not is
// the one that hangs. In a pair it speaks after `limit_s` without a message; at a rendezvous, where the other may
// rightly be measuring, after a round's longest duration more. Whoever speaks writes its `lost:` line and ends its
// process, upon which the launcher ends the others.
class Watchdog {
  public:
    // `round_s`: how long a round may take. `rescue`: called from the watchdog's thread when the rank has made no
    // progress for a while, to bring to disk what was measured.
    Watchdog(Team& team, double limit_s, double round_s, std::function<void()> rescue);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

  private:
    void watch();
    double patience_s(const Heartbeat::Reading& reading) const;
    [[noreturn]] void report(const Heartbeat::Reading& reading, double silent_s) const;

    Team& team_;
    double limit_s_;
    double round_s_;
    std::function<void()> rescue_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace fablint
