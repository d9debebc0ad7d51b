// The measurement of one group in one round: all sizes, all directions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "measure/connections.hpp"
#include "output/cell.hpp"
#include "ranks/rank_group.hpp"
#include "spec/options.hpp"

namespace fablint {

// One object per row. One member of a group is its coordinator: in a pair the leader of the direction, otherwise the
// head. It announces the number of messages before each block, so that only measured messages are in the timed path. A
// sample is the mean over a batch of messages that is long enough for the cost of reading the clock to be below 1 %.
class GroupMeasurement {
  public:
    // From the pattern: the largest number of peers of any rank and of this rank, and whether the hub of a star sends.
    struct GroupShape {
        int fan = 1;
        int own_fan = 1;
        bool hub_leads = false;
    };

    // Collective.
    GroupMeasurement(RankGroup& rank_group, const Clock& clock, double clock_overhead_s, const RowOptions& row,
                     Transport& transport, Memory& memory, const GroupShape& group_shape);
    ~GroupMeasurement();
    GroupMeasurement(const GroupMeasurement&) = delete;
    GroupMeasurement& operator=(const GroupMeasurement&) = delete;

    // All members of the group call it. `first`: true on exactly one rank of a pair, which leads first. Returns the
    // results of this rank with `role.partner()`; no sizes if another member takes the time. `follow_up`: called after
    // each size with the results so far; after it returns false, no other size is measured.
    using FollowUp = std::function<bool(const Cell&)>;
    Cell measure(const Role& role, bool first, std::int64_t round, const FollowUp& follow_up = nullptr);

    // Polled by the coordinator between blocks of samples; true ends the size early.
    void set_stop(std::function<bool()> is_stopped) { is_stopped_ = std::move(is_stopped); }

    // Background traffic of the aggressors in a round, at the first size of the row: blocks of messages until
    // `goes_on`, which the head calls after each block, returns false.
    void make_traffic(const Role& role, std::int64_t round, const std::function<bool()>& goes_on);

    const std::vector<Damage>& damages() const { return damages_; }

  private:
    // An announcement of the coordinator: `batches` samples of `batch` repetitions each. 0 batches: the size and
    // direction are finished.
    struct Order {
        std::int64_t batches = 0;
        std::int64_t batch = 1;
        bool timed = false;
    };
    // This rank's task in one size and direction.
    struct Task {
        Endpoint end;
        bool leads;  // the kernel
        bool takes_time;
        std::vector<int> participants;  // empty: this rank follows `coordinator`
        int coordinator;
        bool many;  // more than a pair: wait until all members are ready
    };

    // Receives a control message. In a group of more than two ranks the watchdog may not report that rank if the
    // message is late: the rank may still wait for a third one in the previous block, where it does not reply to
    // probes.
    template <typename Message>
    void receive(const Task& task, int rank, Message& message) {
        rank_group_.heartbeat().measuring(round_, task.many ? -1 : rank);
        rank_group_.receive_control(rank, &message, sizeof message);
    }
    void connect(const std::vector<int>& peers);
    Endpoint endpoint_of(const Role& role, std::size_t bytes) const;
    Task task_of(const Role& role, const Endpoint& end, bool leads_pair) const;
    void coordinate(const Task& task, double allotted_s);
    void participate(const Task& task);
    double announce(const Task& task, const Order& order);
    void warm_up(const Task& task, double deadline);
    std::int64_t calibrate(const Task& task);
    std::int64_t batch_for(const Task& task);
    double run(const Task& task, const Order& order);
    void prepare_check(const Task& task);
    void gather(const Task& task);
    void inspect(const Task& task);

    RankGroup& rank_group_;
    const Clock& clock_;
    double shortest_batch_s_;
    const RowOptions& row_;
    const KernelInfo& info_;
    GroupShape group_shape_;
    std::unique_ptr<Kernel> kernel_;
    Transport& transport_;
    Connections connections_;
    std::unique_ptr<Window> window_;  // destroyed after the payload, which may lie in it
    std::optional<Connections> window_connections_;
    std::unique_ptr<Payload> payload_;
    Samples samples_;
    std::vector<double> times_;  // of the samples of a block, s
    std::function<bool()> is_stopped_;
    double loop_s_ = 0.0;  // per message: the sum of all samples and of the time between them
    std::int64_t next_message_ = 0;
    std::int64_t round_ = 0;
    std::vector<Damage> damages_;
};

}  // namespace fablint
