// Collective: reading the TCP counters of real ranks.
#include <doctest.h>

#include "host/retransmissions.hpp"
#include "measure/instrument.hpp"
#include "ranks/mpi_control.hpp"

using namespace fablint;

TEST_CASE("ranks of one host have no traffic between hosts, and the collection ends on all of them") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    rank_group.set_yielding(true);
    Retransmissions retransmissions(rank_group);
    for (int row = 0; row < 2; ++row) {
        retransmissions.begin();
        rank_group.barrier();
        const bool has_traffic = retransmissions.collect().has_value();
        if (rank_group.hosts().size() == 1) CHECK(!has_traffic);
    }
}
