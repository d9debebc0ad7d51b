#include "measure/schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/errors.hpp"
#include "base/files.hpp"
#include "base/permutation.hpp"

namespace fablint {

namespace {

// What a rank does in the rounds of the option --rounds.
RoundRoles rounds_of_option(const RowOptions& row, int rank, int ranks) {
    std::string text = row.rounds;
    std::replace(text.begin(), text.end(), ';', '\n');
    return roles_of_rank(rank, text, "--rounds", ranks);
}

// Places of all ranks that rank 0 holds at a time: 2 MiB, or one round.
constexpr std::size_t places_at_a_time = std::size_t{1} << 18;

template <typename Value>
std::string bytes_of(const std::vector<Value>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

template <typename Value>
void append(std::vector<Value>& values, std::string_view bytes) {
    const std::size_t before = values.size();
    values.resize(before + bytes.size() / sizeof(Value));
    if (!bytes.empty()) std::memcpy(values.data() + before, bytes.data(), bytes.size());
}

}  // namespace

RoundRoles read_rounds_file(RankGroup& rank_group, const std::string& name) {
    std::ifstream file;
    std::optional<RoundsReader> reader;
    rank_group.on_rank_0([&] {
        if (name != "-") file = open_file(name);
        reader.emplace(name == "-" ? std::cin : file, name, rank_group.size());
    });
    const std::size_t most = std::max<std::size_t>(1, places_at_a_time / static_cast<std::size_t>(rank_group.size()));
    RoundRoles own;
    own.first_rank = rank_group.rank();
    for (;;) {
        RoundRoles all;
        rank_group.on_rank_0([&] { all = reader->next(most); });
        const std::string slots = rank_group.broadcast(bytes_of(all.slots));
        if (slots.empty()) return own;
        append(own.slots, slots);
        append(own.places,
               rank_group.scatter(bytes_of(all.places), slots.size() / sizeof(std::int32_t) * sizeof(PairPlace)));
    }
}

Schedule::Schedule(const RankGroup& rank_group, const RowOptions& row, const RoundRoles& file_rounds)
    : row_(row), rank_(rank_group.rank()), ranks_(rank_group.size()), repeats_(row.repeats) {
    PatternRequest request;
    request.kind = row.pattern;
    request.ranks = ranks_;
    request.fewest_ranks = row.kernel_info().sends_messages() ? 2 : 1;
    request.matchings = row.matchings;
    request.rounds = row.rounds.empty() ? file_rounds : rounds_of_option(row, rank_, ranks_);
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

std::optional<int> Schedule::peer_on_another_host(const std::vector<int>& rank_host) const {
    const auto host_of = [&](int rank) { return rank_host[static_cast<std::size_t>(rank)]; };
    for (std::int64_t round = 0; round < total(); ++round)
        for (const int peer : role(round).peers)
            if (host_of(rank_) != host_of(peer)) return peer;
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
