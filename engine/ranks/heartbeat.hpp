// What the rank is doing right now, written by the measuring thread and read by the watchdog.
#pragma once

#include <atomic>
#include <cstdint>

namespace fablint {

class Heartbeat {
  public:
    enum class Phase { busy, measuring, waiting };  // busy: own work that waits for nobody

    void busy() { set(Phase::busy, -1, 0); }
    // `partner` -1: several, of whom nobody can say who is late.
    void measuring(std::int64_t round, int partner) {
        round_ = round;
        set(Phase::measuring, partner, 0);
    }
    void waiting(int rank, int stage) { set(Phase::waiting, rank, stage); }
    // A sample was taken. One thread writes: no locked instruction stands between two samples.
    void beat() { beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
    void peer_lives() { ++signs_; }  // the rank waited for has answered a question: it waits itself

    struct Reading {
        std::uint64_t beats;
        std::uint64_t signs;
        Phase phase;
        int peer;   // the rank waited for
        int stage;  // of the rendezvous
        std::int64_t round;
    };
    Reading read() const { return {beats_, signs_, phase_, peer_, stage_, round_}; }

  private:
    void set(Phase phase, int peer, int stage) {
        phase_ = phase;
        peer_ = peer;
        stage_ = stage;
        ++beats_;
    }

    std::atomic<std::uint64_t> beats_{0};
    std::atomic<std::uint64_t> signs_{0};
    std::atomic<Phase> phase_{Phase::busy};
    std::atomic<int> peer_{-1};
    std::atomic<int> stage_{0};
    std::atomic<std::int64_t> round_{-1};
};

}  // namespace fablint
