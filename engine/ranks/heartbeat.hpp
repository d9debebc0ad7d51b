// The current activity of a rank: written by the measuring thread, read by the watchdog.
#pragma once

#include <atomic>
#include <cstdint>

namespace fablint {

class Heartbeat {
  public:
    enum class Phase { busy, measuring, waiting };  // busy: work without waiting

    void busy() { set(Phase::busy, -1, 0); }
    // `partner`: the rank waited for; -1: one of several.
    void measuring(std::int64_t round, int partner) {
        round_ = round;
        set(Phase::measuring, partner, 0);
    }
    void waiting(int rank, int stage) { set(Phase::waiting, rank, stage); }
    // A sample was taken. One thread writes: no locked instruction stands between two samples.
    void beat() { beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
    void peer_replied() { ++replies_; }  // the rank waited for has replied to a probe: it waits itself

    struct Reading {
        std::uint64_t beats;
        std::uint64_t replies;
        Phase phase;
        int peer;   // the rank waited for
        int stage;  // of the barrier
        std::int64_t round;
    };
    Reading read() const { return {beats_, replies_, phase_, peer_, stage_, round_}; }

  private:
    void set(Phase phase, int peer, int stage) {
        phase_ = phase;
        peer_ = peer;
        stage_ = stage;
        ++beats_;
    }

    std::atomic<std::uint64_t> beats_{0};
    std::atomic<std::uint64_t> replies_{0};
    std::atomic<Phase> phase_{Phase::busy};
    std::atomic<int> peer_{-1};
    std::atomic<int> stage_{0};
    std::atomic<std::int64_t> round_{-1};
};

}  // namespace fablint
