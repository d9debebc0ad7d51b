// All ranks of the run together: who is where, a common clock, and the few things they decide in common.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/errors.hpp"
#include "base/mpi_c.hpp"
#include "ranks/heartbeat.hpp"

namespace fablint {

// What ranks tell each other where they meet between rounds: the OR of the flags, the maximum of the number.
struct Signal {
    static constexpr unsigned flush = 1;  // it is time to write what was measured
    static constexpr unsigned stop = 2;   // a signal arrived: end after this round
    static constexpr unsigned failed = 4;
    unsigned flags = 0;
    double largest = 0.0;  // in the loop of rounds: how long the one just finished took, s
};

class Team {
  public:
    explicit Team(const Clock& clock);  // of MPI_COMM_WORLD; collective, as everything below that is not const
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    const std::vector<std::string>& hosts() const { return hosts_; }  // in order of their first rank
    const std::vector<int>& rank_host() const { return rank_host_; }  // index into hosts()
    const std::string& host_of(int rank) const { return hosts_[static_cast<std::size_t>(host_index(rank))]; }
    int first_rank_on_my_host() const { return first_rank_on_my_host_; }
    Heartbeat& heartbeat() { return heartbeat_; }

    // The common clock: rank 0's, in seconds. Offsets are estimated once, from the shortest of several round trips to
    // the parent in a binomial tree (Cristian 1989); ranks of one host share a clock and need none.
    double now() const { return clock_.now() + offset_; }
    double clock_uncertainty() const { return uncertainty_; }  // of the worst rank

    // With more ranks than CPUs, a rank that waits must sleep, or it takes the CPU from those that measure.
    void set_patient(bool patient) { patient_ = patient; }
    // Who has waited so long asks the rank it waits for whether that one waits too (seconds; infinite: never asks).
    void set_ask_after(double seconds) { ask_after_s_ = seconds; }
    bool patient() const { return patient_; }

    // Nobody leaves before everybody has come. A dissemination barrier (Hensgen, Finkel, Manber 1988) that carries the
    // signal along, since OR and maximum may count a contribution twice; at stage k a rank waits for rank - 2^k alone,
    // so the watchdog knows for whom.
    Signal rendezvous(Signal mine = {});

    // Every rank passes what went wrong on it, if anything. If any did, the lowest such rank prints its message as the
    // one error line of the run, and all ranks throw an Error of that status.
    void agree(const std::optional<Error>& mine);

    // Rank 0 does the work, and all agree on how it went.
    template <typename Work>
    void on_rank_0(Work work) {
        agree(rank_ == 0 ? attempt(work) : std::nullopt);
    }

    std::string broadcast(std::string text);                   // rank 0's text, on all ranks
    std::vector<std::string> gather(const std::string& text);  // all ranks' texts, on rank 0; empty elsewhere

    // Pair-wise control messages: kept apart from the payload by a communicator of their own.
    void tell(int rank, const void* data, int bytes);
    void hear(int rank, void* data, int bytes);
    std::vector<char> hear_any_length(int rank);
    bool heard_from(int rank);  // does a message of that rank wait to be heard?

    double maximum(double value);
    double minimum(double value);

  private:
    void find_hosts();
    void synchronise_clocks();
    void measure_offset(int child);
    void answer_offset(int parent);
    void wait(MPI_Request& request, int peer);
    void keep_in_touch(int peer, bool& asking);

    const Clock& clock_;
    MPI_Comm control_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
    int first_rank_on_my_host_ = 0;
    bool patient_ = false;
    double ask_after_s_ = std::numeric_limits<double>::infinity();
    std::vector<bool> asked_;  // by rank: a question of mine is unanswered
    double offset_ = 0.0;
    double uncertainty_ = 0.0;
    std::vector<std::string> hosts_;
    std::vector<int> rank_host_;
    Heartbeat heartbeat_;

    int host_index(int rank) const { return rank_host_[static_cast<std::size_t>(rank)]; }
};

}  // namespace fablint
