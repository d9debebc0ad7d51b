#include "measure/traffic.hpp"

#include <algorithm>

namespace fablint {

namespace {

// Streams towards one rank, or small messages between all: the two worst congestors of GPCNeT, with its 4 KiB.
RowOptions traffic_row(bool incast) {
    RowOptions row;
    row.kernel = incast ? "bandwidth" : "exchange";
    row.sizes = {incast ? std::size_t{64} << 10 : std::size_t{4} << 10};
    if (incast) row.window = 8;
    return row;
}

}  // namespace

Traffic::Traffic(Team& team, const Clock& clock, double clock_overhead_s, const Pattern& pattern, bool incast,
                 Transport& transport, Memory& memory)
    : team_(team), row_(traffic_row(incast)), victims_(pattern.victims()) {
    const std::vector<int> aggressors = pattern.aggressors();
    head_ = aggressors.front();
    constexpr std::int64_t loaded_round = 1;
    Meeting::Crowd crowd;
    crowd.fan = static_cast<int>(aggressors.size()) - 1;
    crowd.own_fan = std::max(1, static_cast<int>(pattern.seat(loaded_round, team.rank()).peers.size()));
    meeting_ = std::make_unique<Meeting>(team, clock, clock_overhead_s, row_, transport, memory, crowd);
}

void Traffic::make(const Seat& seat, std::int64_t round) {
    char word = 0;
    bool announced = false;
    std::vector<int> measuring = victims_;
    meeting_->make_traffic(seat, round, [&] {
        if (!announced)
            for (const int victim : victims_) team_.tell(victim, &word, sizeof word);
        announced = true;
        const auto done = std::stable_partition(measuring.begin(), measuring.end(),
                                                [&](int victim) { return !team_.heard_from(victim); });
        for (auto victim = done; victim != measuring.end(); ++victim) team_.hear(*victim, &word, sizeof word);
        measuring.erase(done, measuring.end());
        return !measuring.empty();
    });
}

void Traffic::await() {
    char word = 0;
    team_.heartbeat().waiting(head_, 0);
    team_.hear(head_, &word, sizeof word);
}

void Traffic::leave() {
    const char word = 0;
    team_.tell(head_, &word, sizeof word);
}

}  // namespace fablint
