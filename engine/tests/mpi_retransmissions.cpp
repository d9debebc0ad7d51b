// Collective: reading the TCP counters of real ranks.
#include <doctest.h>

#include "host/retransmissions.hpp"
#include "measure/instrument.hpp"

using namespace fablint;

TEST_CASE("ranks of one host have no traffic between hosts, and the collection ends on all of them") {
    Team team(wall_clock());
    team.set_patient(true);
    Retransmissions retransmissions(team);
    for (int row = 0; row < 2; ++row) {
        retransmissions.begin();
        team.rendezvous();
        const std::string text = retransmissions.collect().text();
        if (team.hosts().size() == 1) CHECK(text == "null");
    }
}
