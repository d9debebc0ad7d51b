// Requests of patterns, and checks of what every pattern promises.
#pragma once

#include <doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/permutation.hpp"
#include "patterns/pattern.hpp"

namespace fablint {

using Kind = Role::Kind;

// What all ranks do in the rounds of a text.
inline RoundRoles all_roles(const std::string& text, const std::string& name, int ranks) {
    std::istringstream stream(text);
    return RoundsReader(stream, name, ranks).next(1000);
}

inline PatternRequest request(const std::string& kind, int ranks, std::uint64_t seed = 1) {
    PatternRequest request;
    request.kind = kind;
    request.ranks = ranks;
    request.seed = seed;
    request.matchings = 5;
    request.rank_host.resize(static_cast<std::size_t>(ranks));
    if (ranks > 1) request.rounds = all_roles("0-1", "--rounds", ranks);
    return request;
}

// Ranks that are dealt out to hosts one after another, as many to each.
inline PatternRequest on_hosts(const std::string& kind, const std::vector<int>& ranks_of_host) {
    PatternRequest wanted = request(kind, 0);
    for (std::size_t host = 0; host < ranks_of_host.size(); ++host)
        wanted.rank_host.insert(wanted.rank_host.end(), static_cast<std::size_t>(ranks_of_host[host]),
                                static_cast<int>(host));
    wanted.ranks = static_cast<int>(wanted.rank_host.size());
    return wanted;
}

inline std::string refusal(const PatternRequest& wanted) {
    try {
        make_pattern(wanted);
    } catch (const Error& error) {
        CHECK(error.status() == Exit::usage);
        return error.what();
    }
    return "accepted";
}

// Checks what a role says against the roles of its peers: they name it back, and agree on the group and its head.
inline void check_peers(const Pattern& pattern, std::int64_t round, int rank, int ranks) {
    const Role role = pattern.role(round, rank);
    const bool without_peers = role.kind == Kind::idle || role.kind == Kind::world;
    REQUIRE(role.peers.empty() == without_peers);
    REQUIRE((role.slot < 0) == (role.kind == Kind::idle || role.kind == Kind::aggressor));
    REQUIRE(role.slot < pattern.slots(round));
    if (role.kind == Kind::pair || role.kind == Kind::idle) REQUIRE(role.head == -1);
    if (role.kind == Kind::hub) REQUIRE(role.head == rank);
    if (role.kind == Kind::pair || role.kind == Kind::leaf) REQUIRE(role.peers.size() == 1);
    for (const int peer : role.peers) {
        REQUIRE((peer >= 0 && peer < ranks && peer != rank));
        const Role other = pattern.role(round, peer);
        REQUIRE(std::count(other.peers.begin(), other.peers.end(), rank) == 1);
        REQUIRE(std::set<Kind>{role.kind, other.kind} == (role.kind == Kind::hub || role.kind == Kind::leaf
                                                              ? std::set<Kind>{Kind::hub, Kind::leaf}
                                                              : std::set<Kind>{role.kind}));
        REQUIRE(other.slot == role.slot);
        REQUIRE(other.head == role.head);
    }
}

using Groups = std::map<int, std::set<int>>;  // by slot

// Checks every role of a round and what the pattern says of all, and returns its groups.
inline Groups groups_of_round(const Pattern& pattern, std::int64_t round, int ranks) {
    Groups groups;
    int cells = 0;
    std::set<int> makers;
    for (int rank = 0; rank < ranks; ++rank) {
        check_peers(pattern, round, rank, ranks);
        const Role role = pattern.role(round, rank);
        if (role.kind == Kind::aggressor) makers.insert(rank);
        if (role.slot < 0) continue;
        REQUIRE(static_cast<int>(role.peers.size()) <= pattern.fan());
        if (role.kind != Kind::hub) ++cells;
        groups[role.slot].insert(rank);
    }
    for (const auto& [slot, members] : groups) {
        const Role role = pattern.role(round, *members.begin());
        if (role.kind == Kind::pair) REQUIRE(members.size() == 2);
        if (role.kind == Kind::world) REQUIRE(static_cast<int>(members.size()) == ranks);
        for (const int rank : members) REQUIRE((rank == role.head || pattern.role(round, rank).head == role.head));
    }
    CHECK(cells == pattern.cells(round));
    const BackgroundTraffic* background = pattern.background();
    CHECK(makers.empty() == !(background != nullptr && background->runs_in(round)));
    return groups;
}

// The pairs of a round that is a matching: as many as it has slots.
inline std::set<std::pair<int, int>> pairs_of_round(const Pattern& pattern, std::int64_t round, int ranks) {
    const Groups groups = groups_of_round(pattern, round, ranks);
    CHECK(static_cast<int>(groups.size()) == pattern.slots(round));
    std::set<std::pair<int, int>> pairs;
    for (const auto& [slot, members] : groups) pairs.emplace(*members.begin(), *members.rbegin());
    return pairs;
}

// Some ranks and rounds of a pattern that is too large to look at all.
template <typename Visit>
inline void sample(const Pattern& pattern, int ranks, std::uint64_t samples, Visit visit) {
    for (std::uint64_t i = 0; i < samples; ++i)
        visit(static_cast<std::int64_t>(mix(i, 2) % static_cast<std::uint64_t>(pattern.rounds())),
              static_cast<int>(mix(i, 1) % static_cast<std::uint64_t>(ranks)));
}

constexpr int two_million = 2'000'000;

}  // namespace fablint
