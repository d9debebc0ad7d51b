// Collective: all ranks run every case, with CHECK only, since a rank that leaves early would leave the others waiting.
#include <doctest.h>

#include <algorithm>

#include "measure/instrument.hpp"
#include "ranks/team.hpp"

using namespace fablint;

TEST_CASE("a rendezvous gives everybody the union of the flags and the longest time") {
    Team team(wall_clock());
    for (const bool patient : {false, true}) {
        team.set_patient(patient);
        for (int speaker = 0; speaker < team.size(); ++speaker) {
            Signal mine;
            mine.largest = team.rank();
            if (team.rank() == speaker) mine.flags = Signal::stop;
            if (team.rank() == 0) mine.flags |= Signal::flush;
            const Signal all = team.rendezvous(mine);
            CHECK(all.flags == (Signal::stop | Signal::flush));
            CHECK(all.largest == team.size() - 1);
        }
        CHECK(team.rendezvous().flags == 0);
    }
}

TEST_CASE("nobody leaves a rendezvous before everybody has come") {
    Team team(wall_clock());
    team.set_patient(true);
    for (int late = 0; late < team.size(); ++late) {
        team.rendezvous();
        const double begin = team.now();
        if (team.rank() == late)
            while (team.now() < begin + 0.01) {
            }
        const double came = team.now();
        team.rendezvous();
        const double left = team.now();
        const double first_left = team.minimum(left);
        const double last_came = team.maximum(came);
        CHECK(first_left >= last_came - 2.0 * team.clock_uncertainty());
    }
}

TEST_CASE("texts are gathered and broadcast, of any length") {
    Team team(wall_clock());
    CHECK(team.broadcast(team.rank() == 0 ? "hello" : "").compare("hello") == 0);
    CHECK(team.broadcast("").empty());
    const auto all = team.gather(std::string(static_cast<std::size_t>(team.rank()), 'x'));
    CHECK(all.size() == (team.rank() == 0 ? static_cast<std::size_t>(team.size()) : 0));
    for (std::size_t rank = 0; rank < all.size(); ++rank) CHECK(all[rank].size() == rank);
}

TEST_CASE("an error of one rank becomes the error of all") {
    Team team(wall_clock());
    CHECK_NOTHROW(team.agree(std::nullopt));
    std::optional<Error> mine;
    if (team.rank() == team.size() - 1) mine = incomplete_error("(expected in the log of this test)");
    Exit status = Exit::done;
    try {
        team.agree(mine);
    } catch (const Error& error) {
        status = error.status();
    }
    CHECK(status == Exit::incomplete);
}

TEST_CASE("hosts are named once, and every rank knows its first colleague") {
    Team team(wall_clock());
    CHECK(team.hosts().size() >= 1);
    CHECK(team.rank_host().size() == static_cast<std::size_t>(team.size()));
    CHECK(team.rank_host()[0] == 0);
    CHECK(team.host_of(team.first_rank_on_my_host()) == team.host_of(team.rank()));
    CHECK(team.first_rank_on_my_host() <= team.rank());
}

TEST_CASE("the instrument knows itself") {
    Team team(wall_clock());
    team.set_patient(true);
    const Instrument instrument = examine_instrument(team, wall_clock());
    CHECK(instrument.clock.resolution_s > 0.0);
    CHECK(instrument.clock.resolution_s < 1e-3);
    CHECK(instrument.clock.overhead_s > 0.0);
    CHECK(instrument.empty_kernel_s >= 0.0);
    CHECK(instrument.barrier_skew_s >= 0.0);
}
