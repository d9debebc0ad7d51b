// What two partners do when they meet in a round: all sizes, both directions.
#pragma once

#include <cstdint>
#include <vector>

#include "cell.hpp"
#include "kernel.hpp"
#include "options.hpp"
#include "team.hpp"

namespace fablint {

// A payload that did not arrive as it was sent.
struct Damage {
    int src = 0;
    int dst = 0;
    std::size_t size = 0;
    std::int64_t message = 0;  // number since the start of this size and direction
    std::size_t offset = 0;    // of the first wrong byte
};

// For one row. The leader of a direction decides how many messages come next and tells its partner before each block,
// so no message but the measured ones is in the timed path. A sample is the mean over a batch of messages that is long
// enough for the clock's cost to be below 1 % of it.
class Meeting {
  public:
    Meeting(Team& team, const Clock& clock, double clock_overhead_s, const RowOptions& row, Transport& transport,
            Memory& memory);

    // Both partners call it with opposite `first`. Returns the sizes of the cell from this rank to its partner.
    Cell meet(int partner, bool first, std::int64_t round);

    const std::vector<Damage>& damages() const { return damages_; }

  private:
    // What the leader announces: `batches` samples of `batch` repetitions each. 0 batches: this size and direction are
    // done.
    struct Order {
        std::int64_t batches = 0;
        std::int64_t batch = 1;
        bool timed = false;
    };

    void lead(const End& end, double allotted_s);
    void follow(const End& end);
    double command(const End& end, const Order& order);
    void warm_up(const End& end, double deadline);
    std::int64_t calibrate(const End& end);
    double run(const End& end, const Order& order, bool leads);
    void prepare(const End& end, bool leads);
    void inspect(const End& end, bool leads);
    int slots(const End& end) const { return kernel_.windowed() ? end.window : 1; }

    Team& team_;
    const Clock& clock_;
    double shortest_batch_s_;
    const RowOptions& row_;
    const Kernel& kernel_;
    Transport& transport_;
    Payload payload_;
    Samples samples_;
    std::int64_t next_message_ = 0;
    std::vector<Damage> damages_;
};

}  // namespace fablint
