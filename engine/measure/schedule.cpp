#include "measure/schedule.hpp"

#include <algorithm>

#include "base/errors.hpp"
#include "base/permutation.hpp"

namespace fablint {

namespace {

// The text that the pattern reads: one round per line.
std::string rounds_lines(const RowOptions& row, const std::string& file_text) {
    std::string text = row.rounds.empty() ? file_text : row.rounds;
    if (!row.rounds.empty()) std::replace(text.begin(), text.end(), ';', '\n');
    return text;
}

}  // namespace

Schedule::Schedule(const RankGroup& rank_group, const RowOptions& row, const std::string& rounds_text)
    : row_(row), rank_(rank_group.rank()), ranks_(rank_group.size()), repeats_(row.repeats) {
    PatternRequest request;
    request.kind = row.pattern;
    request.ranks = ranks_;
    request.fewest_ranks = row.kernel_info().sends_messages() ? 2 : 1;
    request.matchings = row.matchings;
    request.rounds_text = rounds_lines(row, rounds_text);
    request.rounds_name = row.rounds.empty() ? row.rounds_file : "--rounds";
    request.rank_host = rank_group.rank_host();
    request.servers = row.servers;
    request.victims = row.victims.value_or(0);
    request.incast = !row.all_to_all;
    for (std::int64_t repeat = 0; repeat < repeats_; ++repeat) {
        // Victims are the same in every repeat: their figures with and without background traffic are compared.
        const bool same_ranks = !patterns_.empty() && pattern().background() != nullptr;
        request.seed = mix(row.seed, static_cast<std::uint64_t>(same_ranks ? 0 : repeat));
        patterns_.push_back(make_pattern(request));
    }
    per_repeat_ = pattern().rounds();
}

std::vector<std::int64_t> Schedule::requested_rounds() const {
    std::vector<std::int64_t> rounds;
    for (std::int64_t round = 0; round < total(); ++round)
        if (row_.wants_round(round)) rounds.push_back(round);
    return rounds;
}

Role Schedule::role(std::int64_t round) const {
    return patterns_[static_cast<std::size_t>(repeat_of(round))]->role(round % per_repeat_, rank_);
}

bool Schedule::has_background(std::int64_t round) const {
    const BackgroundTraffic* background = pattern().background();
    return background != nullptr && background->runs_in(round % per_repeat_);
}

std::optional<std::pair<int, int>> Schedule::pair_of_hosts(const std::vector<int>& rank_host) const {
    const auto host_of = [&](int rank) { return rank_host[static_cast<std::size_t>(rank)]; };
    for (const auto& pattern : patterns_)
        for (std::int64_t round = 0; round < per_repeat_; ++round)
            for (int rank = 0; rank < ranks_; ++rank)
                for (const int peer : pattern->role(round, rank).peers)
                    if (host_of(rank) != host_of(peer)) return std::pair(rank, peer);
    return std::nullopt;
}

int Schedule::largest_fan() const {
    int fan = 1;
    if (!row_.pattern_info().has_stars()) return fan;
    for (std::int64_t round = 0; round < per_repeat_; ++round)
        fan = std::max(fan, static_cast<int>(pattern().role(round, rank_).peers.size()));
    return fan;
}

Grid Schedule::grid() const {
    Grid grid;
    grid.layout = row_.pattern_info().layout;
    grid.rows = ranks_;
    const bool matrix = grid.layout == Layout::matrix;
    grid.planes = matrix ? repeats_ : 1;
    grid.columns = matrix ? ranks_ : total();
    return grid;
}

std::vector<int> Schedule::cells_per_round() const {
    std::vector<int> cells;
    for (std::int64_t round = 0; round < total(); ++round) {
        const std::int64_t own_round = round % per_repeat_;
        cells.push_back(row_.single_direction ? pattern().slots(own_round) : pattern().cells(own_round));
    }
    return cells;
}

}  // namespace fablint
