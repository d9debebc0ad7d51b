#include <doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/errors.hpp"
#include "base/permutation.hpp"
#include "patterns/pattern.hpp"
#include "tests/pattern_checks.hpp"

using namespace fablint;

TEST_CASE("a permutation maps 0..n-1 onto itself and back, for any n and seed") {
    for (const std::uint64_t n : {1U, 2U, 3U, 7U, 64U, 65U, 1000U}) {
        for (const std::uint64_t seed : {0U, 1U, 12345U}) {
            const Permutation permutation(n, seed);
            std::set<std::uint64_t> images;
            for (std::uint64_t x = 0; x < n; ++x) {
                const std::uint64_t y = permutation.image(x);
                CHECK(y < n);
                CHECK(permutation.preimage(y) == x);
                images.insert(y);
            }
            CHECK(images.size() == n);
        }
    }
}

TEST_CASE("seeds give different permutations, the same seed the same") {
    const Permutation a(1000, 1), b(1000, 2), again(1000, 1);
    int equal = 0;
    for (std::uint64_t x = 0; x < 1000; ++x) {
        equal += a.image(x) == b.image(x) ? 1 : 0;
        CHECK(a.image(x) == again.image(x));
    }
    CHECK(equal < 10);  // 1 expected
}

TEST_CASE("all-pairs measures every pair exactly once, in the fewest rounds") {
    for (int ranks = 2; ranks <= 40; ++ranks) {
        for (const std::uint64_t seed : {1U, 7U}) {
            const auto pattern = make_pattern(request("all-pairs", ranks, seed));
            CHECK(pattern->rounds() == (ranks % 2 == 0 ? ranks - 1 : ranks));
            std::set<std::pair<int, int>> seen;
            for (std::int64_t round = 0; round < pattern->rounds(); ++round)
                for (const auto& pair : pairs_of_round(*pattern, round, ranks)) CHECK(seen.insert(pair).second);
            CHECK(static_cast<int>(seen.size()) == ranks * (ranks - 1) / 2);
        }
    }
}

// In blocks of ranks, as switches have them, the rounds of each two blocks are spread over the row: no path between two
// switches has all of its rounds in one quarter, and nearly all paths have rounds in each.
TEST_CASE("all-pairs measures each path between two switches all over the row") {
    constexpr int on_switch = 4, quarters = 4;
    for (const int ranks : {16, 31, 32, 64}) {
        int paths = 0, in_all = 0;
        for (const std::uint64_t seed : {1U, 2U, 3U, 7U}) {
            const auto pattern = make_pattern(request("all-pairs", ranks, seed));
            std::map<std::pair<int, int>, std::set<std::int64_t>> seen;
            for (std::int64_t round = 0; round < pattern->rounds(); ++round)
                for (const auto& [a, b] : pairs_of_round(*pattern, round, ranks))
                    if (a / on_switch != b / on_switch)
                        seen[std::minmax(a / on_switch, b / on_switch)].insert(round * quarters / pattern->rounds());
            for (const auto& [path, where] : seen) {
                CHECK(where.size() >= 2);
                ++paths;
                in_all += where.size() == quarters ? 1 : 0;
            }
        }
        CHECK(10 * in_all > 9 * paths);
    }
}

TEST_CASE("matchings at two million ranks: sampled ranks and rounds agree with their partners") {
    for (const char* kind : {"all-pairs", "bisection", "pairs", "random"}) {
        for (const int ranks : {two_million, two_million - 1}) {
            const auto pattern = make_pattern(request(kind, ranks));
            sample(*pattern, ranks, 5'000, [&](std::int64_t round, int rank) {
                check_peers(*pattern, round, rank, ranks);
                CHECK((ranks % 2 == 1 || !pattern->role(round, rank).idle()));
            });
        }
    }
}

TEST_CASE("another seed meets in another order") {
    const auto a = make_pattern(request("all-pairs", 64, 1));
    const auto b = make_pattern(request("all-pairs", 64, 2));
    int equal = 0;
    for (std::int64_t round = 0; round < 63; ++round)
        equal += a->role(round, 5).partner() == b->role(round, 5).partner() ? 1 : 0;
    CHECK(equal < 10);
}

TEST_CASE("bisection pairs each of the first half with each of the second half once") {
    for (const int ranks : {2, 3, 4, 7, 8, 16, 17}) {
        const auto pattern = make_pattern(request("bisection", ranks));
        std::set<std::pair<int, int>> seen;
        for (std::int64_t round = 0; round < pattern->rounds(); ++round)
            for (const auto& [a, b] : pairs_of_round(*pattern, round, ranks)) {
                CHECK(a < ranks / 2);
                CHECK(b >= ranks / 2);
                CHECK(seen.emplace(a, b).second);
            }
        CHECK(static_cast<int>(seen.size()) == (ranks / 2) * (ranks - ranks / 2));
        CHECK(pattern->rounds() == (ranks + 1) / 2);
    }
}

TEST_CASE("pair, pairs and random give matchings") {
    for (const int ranks : {2, 3, 8, 9, 100}) {
        CHECK(pairs_of_round(*make_pattern(request("pair", ranks)), 0, ranks).count({0, 1}) == 1);
        const auto pairs = pairs_of_round(*make_pattern(request("pairs", ranks)), 0, ranks);
        for (const auto& [a, b] : pairs) CHECK(b == a + ranks / 2);
        const auto random = make_pattern(request("random", ranks));
        CHECK(random->rounds() == 5);
        for (std::int64_t round = 0; round < 5; ++round) pairs_of_round(*random, round, ranks);
    }
}

TEST_CASE("a rounds file is taken as written") {
    PatternRequest wanted = request("rounds", 6);
    wanted.rounds = all_roles("# two rounds\n0-1 2-3\n\n5-0, 4-2  # odd one out\n", "my.rounds", 6);
    const auto pattern = make_pattern(wanted);
    CHECK(pattern->rounds() == 2);
    CHECK(pairs_of_round(*pattern, 0, 6) == std::set<std::pair<int, int>>{{0, 1}, {2, 3}});
    CHECK(pairs_of_round(*pattern, 1, 6) == std::set<std::pair<int, int>>{{0, 5}, {2, 4}});
    CHECK(pattern->role(1, 1).idle());
    CHECK(pattern->role(1, 1).partner() == -1);
}

TEST_CASE("a rank that holds its own roles only has the same in each round as among all") {
    const std::string text = "0-1 2-3\n5-0 4-2\n3-4\n";
    PatternRequest wanted = request("rounds", 6);
    wanted.rounds = all_roles(text, "my.rounds", 6);
    const auto all = make_pattern(wanted);
    for (int rank = 0; rank < 6; ++rank) {
        wanted.rounds = roles_of_rank(rank, text, "my.rounds", 6);
        CHECK(wanted.rounds.places.size() == 3);
        const auto own = make_pattern(wanted);
        for (std::int64_t round = 0; round < 3; ++round) {
            CHECK(own->slots(round) == all->slots(round));
            CHECK(own->role(round, rank).peers == all->role(round, rank).peers);
            CHECK(own->role(round, rank).slot == all->role(round, rank).slot);
        }
    }
}

TEST_CASE("a rounds file is read some rounds at a time") {
    std::istringstream text("0-1\n\n1-2\n# none\n0-2 1-3\n");
    RoundsReader reader(text, "my.rounds", 4);
    CHECK(reader.next(2).slots == std::vector<std::int32_t>{1, 1});
    const RoundRoles last = reader.next(2);
    CHECK(last.slots == std::vector<std::int32_t>{2});
    CHECK(last.places[2].partner == 0);
    CHECK(reader.next(2).slots.empty());
}

TEST_CASE("a wrong rounds file is refused with its line") {
    const auto message = [](const std::string& text) -> std::string {
        try {
            all_roles(text, "my.rounds", 4);
        } catch (const Error& error) {
            CHECK(error.status() == Exit::usage);
            return error.what();
        }
        return "accepted";
    };
    CHECK(message("") == "my.rounds: no round in the file: write one round per line, such as 0-1 2-3");
    CHECK(message("0-1\n0-1 1-2\n") == "my.rounds:2: rank 1 appears twice: a rank has one partner per round");
    CHECK(message("0-4") == "my.rounds:1: rank 4 does not exist: this run has 4 ranks");
    CHECK(message("0-0") == "my.rounds:1: rank 0 appears twice: a rank has one partner per round");
    for (const char* word : {"0", "0-", "-1-2", "a-b", "0-1x", "0--1", "0+1"})
        CHECK(message(word) == "my.rounds:1: '" + std::string(word) + "' is not a pair: write it as 0-1");
}

TEST_CASE("one rank has no partner") {
    for (const PatternInfo& info : patterns())
        CHECK(refusal(request(info.name, 1)) ==
              "pattern " + std::string(info.name) +
                  " needs at least 2 ranks, this run has 1: start it with mpiexec -n 2");
    PatternRequest alone = request("world", 1);
    alone.fewest_ranks = 1;  // no message is sent
    CHECK(make_pattern(alone) != nullptr);
}

TEST_CASE("every pattern agrees with its own counts, at every number of ranks") {
    for (const PatternInfo& info : patterns()) {
        for (int ranks = 4; ranks <= 21; ++ranks) {
            const auto pattern = make_pattern(request(info.name, ranks));
            int fan = 0;
            for (std::int64_t round = 0; round < pattern->rounds(); ++round) {
                groups_of_round(*pattern, round, ranks);
                for (int rank = 0; rank < ranks; ++rank) {
                    const Role role = pattern->role(round, rank);
                    if (role.slot >= 0) fan = std::max(fan, static_cast<int>(role.peers.size()));
                }
            }
            CHECK(std::max(fan, 1) == pattern->fan());
        }
    }
}

TEST_CASE("fan-in and fan-out: each rank of the first host has the ranks of its number on all others") {
    for (const char* kind : {"fan-in", "fan-out"}) {
        const PatternRequest wanted = on_hosts(kind, {3, 3, 3, 3});
        const auto pattern = make_pattern(wanted);
        CHECK((pattern_named(kind).sender == StarSender::hub) == (std::string(kind) == "fan-out"));
        CHECK(pattern->fan() == 3);
        const Groups groups = groups_of_round(*pattern, 0, wanted.ranks);
        CHECK(groups == Groups{{0, {0, 3, 6, 9}}, {1, {1, 4, 7, 10}}, {2, {2, 5, 8, 11}}});
        for (const int hub : {0, 1, 2}) CHECK(pattern->role(0, hub).kind == Kind::hub);
    }
}

TEST_CASE("fans need not have equally many ranks on every host, nor more hosts than one") {
    const PatternRequest uneven = on_hosts("fan-in", {2, 5, 1});
    CHECK(groups_of_round(*make_pattern(uneven), 0, 8) == Groups{{0, {0, 2, 4, 6, 7}}, {1, {1, 3, 5}}});
    const PatternRequest few = on_hosts("fan-in", {4, 1});  // three ranks of the first host have no leaf
    CHECK(groups_of_round(*make_pattern(few), 0, 5) == Groups{{0, {0, 4}}});
    const PatternRequest one_host = on_hosts("fan-in", {4});
    CHECK(groups_of_round(*make_pattern(one_host), 0, 4) == Groups{{0, {0, 1, 2, 3}}});
}

TEST_CASE("every client meets every server once, and no server has two clients more than another") {
    for (const int ranks : {2, 3, 5, 8, 17}) {
        for (int servers = 1; servers < ranks; ++servers) {
            PatternRequest wanted = request("clients-servers", ranks);
            wanted.servers = servers;
            const auto pattern = make_pattern(wanted);
            CHECK(pattern->rounds() == servers);
            std::set<std::pair<int, int>> met;
            for (std::int64_t round = 0; round < pattern->rounds(); ++round) {
                const Groups groups = groups_of_round(*pattern, round, ranks);
                std::vector<std::size_t> clients(static_cast<std::size_t>(servers));
                for (const auto& [server, members] : groups) {
                    clients[static_cast<std::size_t>(server)] = members.size() - 1;
                    for (const int rank : members)
                        if (rank != server) CHECK(met.emplace(rank, server).second);
                }
                const auto [fewest, most] = std::minmax_element(clients.begin(), clients.end());
                CHECK(*most - *fewest <= 1);
            }
            CHECK(static_cast<int>(met.size()) == servers * (ranks - servers));
        }
    }
}

TEST_CASE("servers leave a client") {
    PatternRequest wanted = request("clients-servers", 4);
    wanted.servers = 4;
    CHECK(refusal(wanted) == "--servers 4 leaves no client: this run has 4 ranks");
}

TEST_CASE("stars at two million ranks: sampled ranks agree with their hubs") {
    PatternRequest fan = request("fan-in", two_million);
    for (std::size_t rank = 0; rank < fan.rank_host.size(); ++rank) fan.rank_host[rank] = static_cast<int>(rank / 128);
    PatternRequest served = request("clients-servers", two_million);
    served.servers = 2'000;
    for (const PatternRequest& wanted : {fan, served}) {
        const auto pattern = make_pattern(wanted);
        CHECK(pattern->cells(0) == two_million - (wanted.kind == "fan-in" ? 128 : 2'000));
        sample(*pattern, two_million, 20'000, [&](std::int64_t round, int rank) {
            const Role role = pattern->role(round, rank);
            if (role.kind != Kind::leaf) return;  // its hub lists as many as it can: a few are looked at below
            REQUIRE((role.partner() == role.head && role.head < two_million));
            REQUIRE((role.slot >= 0 && role.slot < pattern->slots(round)));
        });
        for (const std::int64_t round : {std::int64_t{0}, pattern->rounds() - 1}) {
            const Role hub = pattern->role(round, 17);
            REQUIRE(hub.kind == Kind::hub);
            CHECK(static_cast<int>(hub.peers.size()) <= pattern->fan());
            for (std::size_t i = 0; i < hub.peers.size(); i += 97) {
                const Role leaf = pattern->role(round, hub.peers[i]);
                REQUIRE((leaf.kind == Kind::leaf && leaf.head == 17 && leaf.slot == hub.slot));
            }
        }
    }
}

TEST_CASE("the world is one group of all ranks") {
    for (const int ranks : {2, 3, 8, two_million}) {
        const auto pattern = make_pattern(request("world", ranks));
        CHECK(pattern->rounds() == 1);
        CHECK(pattern->slots(0) == 1);
        CHECK(pattern->cells(0) == ranks);
        for (const int rank : {0, 1, ranks - 1}) {
            const Role role = pattern->role(0, rank);
            CHECK((role.kind == Kind::world && role.head == 0 && role.slot == 0 && role.peers.empty()));
        }
    }
}
