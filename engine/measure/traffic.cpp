#include "measure/traffic.hpp"

#include <algorithm>

namespace fablint {

namespace {

// Streams to one rank, or small messages between all ranks: the two worst congestors of GPCNeT, with its 4 KiB.
RowOptions traffic_row(bool incast) {
    RowOptions row;
    row.kernel = incast ? "bandwidth" : "exchange";
    row.sizes = {incast ? std::size_t{64} << 10 : std::size_t{4} << 10};
    if (incast) row.window = 8;
    return row;
}

}  // namespace

Traffic::Traffic(RankGroup& rank_group, const Clock& clock, double clock_overhead_s, const Pattern& pattern,
                 bool incast, Transport& transport, Memory& memory)
    : rank_group_(rank_group), row_(traffic_row(incast)), victims_(pattern.background()->victims()) {
    const std::vector<int> aggressors = pattern.background()->aggressors();
    head_ = aggressors.front();
    constexpr std::int64_t loaded_round = 1;
    GroupMeasurement::GroupShape group_shape;
    group_shape.fan = static_cast<int>(aggressors.size()) - 1;
    group_shape.own_fan = std::max(1, static_cast<int>(pattern.role(loaded_round, rank_group.rank()).peers.size()));
    measurement_ =
        std::make_unique<GroupMeasurement>(rank_group, clock, clock_overhead_s, row_, transport, memory, group_shape);
}

void Traffic::make(const Role& role, std::int64_t round) {
    char word = 0;
    bool announced = false;
    std::vector<int> measuring = victims_;
    measurement_->make_traffic(role, round, [&] {
        if (!announced)
            for (const int victim : victims_) rank_group_.send_control(victim, &word, sizeof word);
        announced = true;
        const auto done = std::stable_partition(measuring.begin(), measuring.end(),
                                                [&](int victim) { return !rank_group_.has_control_from(victim); });
        for (auto victim = done; victim != measuring.end(); ++victim)
            rank_group_.receive_control(*victim, &word, sizeof word);
        measuring.erase(done, measuring.end());
        return !measuring.empty();
    });
}

void Traffic::wait_until_running() {
    char word = 0;
    rank_group_.heartbeat().waiting(head_, 0);
    rank_group_.receive_control(head_, &word, sizeof word);
}

void Traffic::leave() {
    const char word = 0;
    rank_group_.send_control(head_, &word, sizeof word);
}

}  // namespace fablint
