// Ends a run in which a rank stalls, and names that rank. A thread beside the measuring one; it makes no MPI calls.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "ranks/rank_group.hpp"
#include "sockets/connection_requests.hpp"

namespace fablint {

// Reports that `rank` cannot take part in the run any more, and ends this process; the launcher then ends the other
// ranks. The front end reads the line and continues without the rank.
[[noreturn]] void end_without(const RankGroup& rank_group, int rank, std::int64_t round, const std::string& reason);

// A waiting rank reports its peer only if the peer does not reply to probes (RankGroup::wait sends them): a peer that
// waits itself is not reported. In a group of more than two ranks it is unknown which rank is late: every waiting rank
// reports itself, and the rank without a report is the stalled one. In a pair the report comes after `limit_s` without
// a message, sooner if this rank requests a TCP connection in vain; at a barrier, where the peer may still be
// measuring, after the longest duration of a round more. A rank that reports writes a `failed:` line and ends its
// process; the launcher then ends the other ranks. A rank that learns that it has failed, while it waits for its own
// peer, reports this peer: the two ends of a cut path report each other.
class Watchdog {
  public:
    // `round_s`: time limit of a round. `rescue`: called from the watchdog's thread when the rank has made no progress
    // for a while; writes the measured cells to disk.
    Watchdog(RankGroup& rank_group, double limit_s, double round_s, std::function<void()> rescue);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

  private:
    void watch();
    bool sleep(double interval_s);  // false when the run is over
    double until_next_action(const Heartbeat::Reading& reading, double rescue_in_s) const;
    double limit_for(const Heartbeat::Reading& reading) const;
    void look_for_requests(const Heartbeat::Reading& reading);
    void end(const Failure& failure) const;  // does not return
    bool is_waiting_for_peer(const Heartbeat::Reading& reading, double longer_than_s) const;
    void print_silence(const Heartbeat::Reading& reading, const std::string& reason) const;
    std::string wait_reason(const Heartbeat::Reading& reading, double silent_s) const;
    [[noreturn]] void report(const Heartbeat::Reading& reading, double silent_s) const;

    RankGroup& rank_group_;
    double limit_s_;
    double round_s_;
    std::function<void()> rescue_;
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    bool over_ = false;
    std::atomic<double> silent_s_{0.0};  // since the last progress or reply
    VainRequests requests_;              // of connections, while this rank waits for its peer
    std::string request_reason_;         // guarded by mutex_; empty unless they are the reason for the silence
    std::thread thread_;
};

}  // namespace fablint
