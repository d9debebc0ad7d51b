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

TEST_CASE("victims are the same pairs isolated and under load, and all other ranks generate the load") {
    for (const int ranks : {4, 5, 8, 30, 41}) {
        for (const bool incast : {true, false}) {
            PatternRequest wanted = request("victim-aggressor", ranks, 3);
            wanted.incast = incast;
            const auto pattern = make_pattern(wanted);
            REQUIRE(pattern->rounds() == 2);
            CHECK_FALSE(pattern->background()->runs_in(0));
            CHECK(pattern->background()->runs_in(1));
            const auto isolated = pairs_of_round(*pattern, 0, ranks);
            CHECK(isolated == pairs_of_round(*pattern, 1, ranks));
            CHECK(static_cast<int>(isolated.size()) == std::max(1, ranks / 10));

            std::set<int> victims;
            for (const auto& [a, b] : isolated) victims.insert({a, b});
            const std::vector<int> listed = pattern->background()->victims();
            CHECK(std::set<int>(listed.begin(), listed.end()) == victims);
            const std::vector<int> aggressors = pattern->background()->aggressors();
            CHECK(aggressors.size() + victims.size() == static_cast<std::size_t>(ranks));
            for (const int rank : aggressors) {
                CHECK(victims.count(rank) == 0);
                CHECK(pattern->role(0, rank).idle());
                const Role role = pattern->role(1, rank);
                CHECK(role.kind == Kind::aggressor);
                CHECK(role.head == aggressors.front());
                const bool has_all = !incast || rank == role.head;
                CHECK(role.peers.size() == (has_all ? aggressors.size() - 1 : 1));
                if (!has_all) CHECK(role.partner() == role.head);
            }
        }
    }
}

TEST_CASE("another seed gives other victims, the same seed the same") {
    const auto victims = [](std::uint64_t seed) {
        return make_pattern(request("victim-aggressor", 1000, seed))->background()->victims();
    };
    CHECK(victims(1) == victims(1));
    CHECK(victims(1) != victims(2));
}

TEST_CASE("victims leave two aggressors") {
    PatternRequest wanted = request("victim-aggressor", 8);
    wanted.victims = 3;
    CHECK(groups_of_round(*make_pattern(wanted), 1, 8).size() == 3);
    wanted.victims = 4;
    CHECK(refusal(wanted) == "victim-aggressor with 4 victim pairs needs at least 10 ranks, this run has 8");
    CHECK(refusal(request("victim-aggressor", 3)) ==
          "victim-aggressor with 1 victim pairs needs at least 4 ranks, this run has 3");
}

TEST_CASE("victim-aggressor at two million ranks: sampled ranks agree with their partners") {
    const auto pattern = make_pattern(request("victim-aggressor", two_million));
    const std::vector<int> victims = pattern->background()->victims();
    CHECK(victims.size() == two_million / 5);
    for (std::size_t i = 0; i < victims.size(); i += 997) {
        check_peers(*pattern, 0, victims[i], two_million);
        CHECK(pattern->role(0, victims[i]).kind == Kind::pair);
        CHECK(pattern->role(0, victims[i]).partner() == pattern->role(1, victims[i]).partner());
    }
    const std::vector<int> aggressors = pattern->background()->aggressors();
    for (std::size_t i = 1; i < aggressors.size(); i += 99'991) {
        CHECK(pattern->role(0, aggressors[i]).idle());
        const Role role = pattern->role(1, aggressors[i]);
        CHECK((role.kind == Kind::aggressor && role.partner() == aggressors.front()));
    }
}
