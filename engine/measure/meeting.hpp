// What the members of a group do when they meet in a round: all sizes, all directions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/kernel.hpp"
#include "output/cell.hpp"
#include "ranks/team.hpp"
#include "spec/options.hpp"

namespace fablint {

// For one row. One member of a group commands: in a pair the leader of the direction, else the head. It decides how
// many messages come next and tells the others before each block, so no message but the measured ones is in the timed
// path. A sample is the mean over a batch of messages that is long enough for the clock's cost to be below 1 % of it.
class Meeting {
  public:
    // What the pattern says: most peers of any rank, most peers of this one, who sends in a star.
    struct Crowd {
        int fan = 1;
        int own_fan = 1;
        bool hub_leads = false;
    };

    // Collective where the kernel needs a window.
    Meeting(Team& team, const Clock& clock, double clock_overhead_s, const RowOptions& row, Transport& transport,
            Memory& memory, const Crowd& crowd);

    // All members of the group call it. `first`: in a pair, exactly one of the two. Returns this rank's sizes to
    // `seat.partner()`, none where another member takes the time.
    Cell meet(const Seat& seat, bool first, std::int64_t round);

    // The aggressors' part in a round, at the row's first size: blocks of traffic, until `goes_on`, which the head asks
    // after each block, says no.
    void make_traffic(const Seat& seat, std::int64_t round, const std::function<bool()>& goes_on);

    const std::vector<Damage>& damages() const { return damages_; }

  private:
    // What the commander announces: `batches` samples of `batch` repetitions each. 0 batches: this size and direction
    // are done.
    struct Order {
        std::int64_t batches = 0;
        std::int64_t batch = 1;
        bool timed = false;
    };
    // This rank's part in one size and direction.
    struct Part {
        End end;
        bool leads;  // the kernel
        bool takes_time;
        std::vector<int> commanded;  // empty: obeys `commander`
        int commander;
        bool crowd;  // more than a pair: wait until everybody is ready
    };

    // A control message of a rank. In a crowd the watchdog may not accuse that rank when the message does not come: the
    // rank may still be in the block before, where it waits for a third one and answers no question.
    template <typename Message>
    void hear(const Part& part, int rank, Message& message) {
        team_.heartbeat().measuring(round_, part.crowd ? -1 : rank);
        team_.hear(rank, &message, sizeof message);
    }
    End end_of(const Seat& seat, std::size_t bytes) const;
    Part part_of(const Seat& seat, const End& end, bool leads_pair) const;
    void command(const Part& part, double allotted_s);
    void obey(const Part& part);
    double announce(const Part& part, const Order& order);
    void warm_up(const Part& part, double deadline);
    std::int64_t calibrate(const Part& part);
    std::int64_t batch_for(const Part& part);
    double run(const Part& part, const Order& order);
    void prepare_check(const Part& part);
    void gather(const Part& part);
    void inspect(const Part& part);

    Team& team_;
    const Clock& clock_;
    double shortest_batch_s_;
    const RowOptions& row_;
    const KernelInfo& info_;
    Crowd crowd_;
    std::unique_ptr<Kernel> kernel_;
    Transport& transport_;
    std::unique_ptr<OneSided> window_;  // before the payload, which may lie in it
    std::unique_ptr<Payload> payload_;
    Samples samples_;
    std::vector<double> times_;  // of the samples of a block, s
    double loop_s_ = 0.0;        // per message: the sum of all samples with what lies between them
    std::int64_t next_message_ = 0;
    std::int64_t round_ = 0;
    std::vector<Damage> damages_;
};

}  // namespace fablint
