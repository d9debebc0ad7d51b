#include <doctest.h>

#include <set>
#include <utility>

#include "../errors.hpp"
#include "../pattern.hpp"
#include "../permutation.hpp"

using namespace fablint;

namespace {

PatternRequest request(const std::string& kind, int ranks, std::uint64_t seed = 1) {
    PatternRequest request;
    request.kind = kind;
    request.ranks = ranks;
    request.seed = seed;
    request.matchings = 5;
    return request;
}

// Checks that a round is a matching whose slots number its pairs, and returns the pairs.
std::set<std::pair<int, int>> pairs_of_round(const Pattern& pattern, std::int64_t round, int ranks) {
    std::set<std::pair<int, int>> pairs;
    std::set<int> slots;
    for (int rank = 0; rank < ranks; ++rank) {
        const Seat seat = pattern.seat(round, rank);
        if (seat.partner < 0) continue;
        REQUIRE(seat.partner < ranks);
        REQUIRE(seat.partner != rank);
        const Seat other = pattern.seat(round, seat.partner);
        REQUIRE(other.partner == rank);
        REQUIRE(other.slot == seat.slot);
        if (rank < seat.partner) {
            pairs.emplace(rank, seat.partner);
            CHECK(slots.insert(seat.slot).second);
        }
    }
    CHECK(static_cast<int>(pairs.size()) == pattern.slots(round));
    for (const int slot : slots) CHECK((slot >= 0 && slot < pattern.slots(round)));
    return pairs;
}

}  // namespace

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

TEST_CASE("all-pairs at two million ranks: sampled ranks and rounds agree with their partners") {
    for (const int ranks : {2'000'000, 1'999'999}) {
        const auto pattern = make_pattern(request("all-pairs", ranks));
        for (std::uint64_t sample = 0; sample < 20'000; ++sample) {
            const auto rank = static_cast<int>(mix(sample, 1) % static_cast<std::uint64_t>(ranks));
            const auto round =
                static_cast<std::int64_t>(mix(sample, 2) % static_cast<std::uint64_t>(pattern->rounds()));
            const Seat seat = pattern->seat(round, rank);
            if (seat.partner < 0) {
                CHECK(ranks % 2 == 1);
                continue;
            }
            REQUIRE((seat.partner < ranks && seat.partner != rank));
            REQUIRE(pattern->seat(round, seat.partner).partner == rank);
            REQUIRE(pattern->seat(round, seat.partner).slot == seat.slot);
            REQUIRE((seat.slot >= 0 && seat.slot < pattern->slots(round)));
        }
    }
}

TEST_CASE("another seed meets in another order") {
    const auto a = make_pattern(request("all-pairs", 64, 1));
    const auto b = make_pattern(request("all-pairs", 64, 2));
    int equal = 0;
    for (std::int64_t round = 0; round < 63; ++round)
        equal += a->seat(round, 5).partner == b->seat(round, 5).partner ? 1 : 0;
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
    wanted.rounds_name = "my.rounds";
    wanted.rounds_text = "# two rounds\n0-1 2-3\n\n5-0, 4-2  # odd one out\n";
    const auto pattern = make_pattern(wanted);
    CHECK(pattern->rounds() == 2);
    CHECK(pairs_of_round(*pattern, 0, 6) == std::set<std::pair<int, int>>{{0, 1}, {2, 3}});
    CHECK(pairs_of_round(*pattern, 1, 6) == std::set<std::pair<int, int>>{{0, 5}, {2, 4}});
    CHECK(pattern->seat(1, 1).partner == -1);
}

TEST_CASE("a wrong rounds file is refused with its line") {
    PatternRequest wanted = request("rounds", 4);
    wanted.rounds_name = "my.rounds";
    const auto message = [&](const std::string& text) -> std::string {
        wanted.rounds_text = text;
        try {
            make_pattern(wanted);
        } catch (const Error& error) {
            return error.what();
        }
        return "accepted";
    };
    CHECK(message("") == "my.rounds: no round in the file: write one round per line, such as 0-1 2-3");
    CHECK(message("0-1\n0-1 1-2\n") == "my.rounds:2: rank 1 appears twice: a rank has one partner per round");
    CHECK(message("0-4") == "my.rounds:1: rank 4 does not exist: this run has 4 ranks");
    CHECK(message("0-0") == "my.rounds:1: rank 0 appears twice: a rank has one partner per round");
    for (const char* word : {"0", "0-", "-1-2", "a-b", "0-1x", "0--1", "0+1"})
        CHECK(message(word) == "my.rounds:1: '" + std::string(word) + "' is no pair: write it as 0-1");
}

TEST_CASE("one rank has no partner") {
    for (const PatternInfo& info : patterns()) CHECK_THROWS_AS(make_pattern(request(info.name, 1)), Error);
}
