// All ranks of the run: their hosts, a common clock, barriers and control messages.
#pragma once

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/errors.hpp"
#include "ranks/control_channel.hpp"
#include "ranks/gathered_texts.hpp"
#include "ranks/heartbeat.hpp"

namespace fablint {

// What a barrier combines over all ranks: the OR of the flags and the maximum of the number.
struct Signal {
    static constexpr unsigned flush = 1;  // write the measured cells to disk
    static constexpr unsigned stop = 2;   // a signal arrived: end after this round
    static constexpr unsigned failed = 4;
    unsigned flags = 0;
    double largest = 0.0;  // in the loop of rounds: duration of the last round, s
};

class RankGroup {
  public:
    // The ranks of `control`. Collective, as everything below that is not const.
    RankGroup(const Clock& clock, std::unique_ptr<ControlChannel> control);
    RankGroup(const RankGroup&) = delete;
    RankGroup& operator=(const RankGroup&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    ControlChannel& control() const { return *control_; }
    const std::vector<std::string>& hosts() const { return hosts_; }  // in order of their first rank
    const std::vector<int>& rank_host() const { return rank_host_; }  // index into hosts()
    const std::string& host_of(int rank) const { return hosts_[static_cast<std::size_t>(host_index(rank))]; }
    int first_rank_on_my_host() const { return first_rank_on_my_host_; }
    bool speaks_for_host() const { return first_rank_on_my_host_ == rank_; }
    std::vector<int> first_ranks() const;  // of each host
    Heartbeat& heartbeat() { return heartbeat_; }

    // The common clock: rank 0's, in seconds. Offsets are estimated once, from the shortest of several round trips to
    // the parent in a binomial tree (Cristian 1989); ranks of one host share a clock and need none.
    double now() const { return clock_.now() + offset_; }
    double clock_uncertainty() const { return uncertainty_; }  // of the worst rank

    // Yield the CPU while waiting: with more ranks than CPUs, a rank that spins takes the CPU from ranks that measure.
    void set_yielding(bool yielding) { yielding_ = yielding; }
    // After this many seconds of waiting, probe the peer to learn whether it is itself waiting; infinite: never.
    void set_probe_after(double seconds) { probe_after_s_ = seconds; }
    // Called while this rank waits for a control message, so that a transport serves its peers; null: nothing to do.
    // Returns whether it did anything.
    void set_progress(std::function<bool()> progress) { progress_ = std::move(progress); }
    bool yielding() const { return yielding_; }

    // No rank returns before all ranks have called it. A dissemination barrier (Hensgen, Finkel, Manber 1988), which
    // combines the signals as well, since OR and maximum may count a contribution twice. At stage k a rank waits for
    // rank - 2^k only: the watchdog can name the rank.
    Signal barrier(Signal own = {});

    // Collective. `own` is the error of this rank, if any. If any rank failed, the lowest such rank prints its
    // message, as the only error line of the run, and all ranks throw an Error with its status.
    void throw_if_any_failed(const std::optional<Error>& own);

    // Rank 0 does the work; all ranks throw if it failed.
    template <typename Work>
    void on_rank_0(Work work) {
        throw_if_any_failed(rank_ == 0 ? attempt(work) : std::nullopt);
    }

    std::string broadcast(std::string text);  // rank 0's text, on all ranks
    // The text that `next` returns on rank 0, on all ranks, however long that takes: the other ranks sleep meanwhile.
    std::string wait_for_text(const std::function<std::string()>& next);
    GatheredTexts gather(const std::string& text);  // all ranks' texts, on rank 0; empty elsewhere
    // All ranks' numbers, on rank 0; empty elsewhere.
    template <typename Number>
    std::vector<Number> gather_numbers(Number own) {
        std::vector<Number> numbers = {own};
        numbers.reserve(branch_size());
        const auto packed = [&] {
            return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
        };
        const bool arrived = gather_branches(packed, [&](const std::string& branch) {
            const std::size_t before = numbers.size();
            numbers.resize(before + branch.size() / sizeof(Number));
            std::memcpy(numbers.data() + before, branch.data(), branch.size());
        });
        if (!arrived) numbers.clear();
        return numbers;
    }
    // Of rank 0's text, which has `bytes` bytes for each rank, those of this rank.
    std::string scatter(std::string text, std::size_t bytes);

    // Control messages between two ranks.
    void send_control(int rank, const void* data, std::size_t bytes);
    void receive_control(int rank, void* data, std::size_t bytes);
    void send_control_text(int rank, std::string_view text);
    std::string receive_control_text(int rank);
    bool has_control_from(int rank);  // has a message of that rank arrived?

    double maximum(double value);
    double minimum(double value);

  private:
    // Collective, along the tree of broadcast(): a rank sends what its whole branch has. True on rank 0.
    bool gather_branches(const std::function<std::string()>& packed,
                         const std::function<void(const std::string&)>& add_packed);
    std::size_t branch_size() const;
    void find_hosts();
    void synchronise_clocks();
    void measure_offset(int child);
    void reply_offset(int parent);
    bool serve_peers();
    ControlChannel::Idle waiting_for(int peer);
    ControlChannel::Idle waiting_for_requests() const;
    void exchange_probes(int peer, bool& probing);
    void send_text(int rank, int tag, std::string_view text);
    std::string receive_text(int rank, int tag);
    std::string receive_text(int rank, int tag, const ControlChannel::Idle& idle);

    const Clock& clock_;
    std::unique_ptr<ControlChannel> control_;
    int rank_;
    int size_;
    int first_rank_on_my_host_ = 0;
    bool yielding_ = false;
    std::function<bool()> progress_;
    double probe_after_s_ = std::numeric_limits<double>::infinity();
    std::vector<bool> probed_;  // by rank: a probe of this rank has no reply yet
    double offset_ = 0.0;
    double uncertainty_ = 0.0;
    std::vector<std::string> hosts_;
    std::vector<int> rank_host_;
    Heartbeat heartbeat_;

    int host_index(int rank) const { return rank_host_[static_cast<std::size_t>(rank)]; }
};

}  // namespace fablint
