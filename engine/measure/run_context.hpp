#pragma once

#include <string>
#include <vector>

#include "host/facts.hpp"
#include "host/retransmissions.hpp"
#include "measure/instrument.hpp"
#include "measure/run_report.hpp"
#include "output/store.hpp"
#include "ranks/rank_group.hpp"
#include "sockets/connect_limit.hpp"

namespace fablint {

// What the rows of a run have in common.
struct RunContext {
    RankGroup& rank_group;
    const Clock& clock;
    const Instrument& instrument;
    Store* store;  // null: nothing is written
    Facts* facts;  // null: NIC counters are not read
    Retransmissions& retransmissions;
    const std::vector<std::string>& interfaces;  // of the NIC nearest to this rank
    double epoch;                                // instant of the common clock from which `started` counts
    bool progress;
    bool by_size;  // write and report each size of a row of one round when it is measured
    RunReport& report;
    std::string sysfs = "/sys";
    double connect_limit_s = fablint::connect_limit_s;  // of transports, for a connection to a peer
};

}  // namespace fablint
