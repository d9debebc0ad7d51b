// Connections of a transport or window: addresses of all ranks, and the peers to which this rank is connected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messaging/connectable.hpp"
#include "ranks/rank_group.hpp"

namespace fablint {

class Connections {
  public:
    // Collective: exchanges the addresses, over MPI, where there are any.
    Connections(RankGroup& rank_group, Connectable& connectable);

    // Connects to the peers that are not connected yet; both ends of a pair call it before their first message. The
    // watchdog sees a rank that waits: libraries may request a connection in a call that returns when it is answered.
    void connect(const std::vector<int>& peers, std::int64_t round);

  private:
    void connect_to(int peer, const std::string& opened, std::int64_t round);

    RankGroup& rank_group_;
    Connectable& connectable_;
    std::vector<std::string> addresses_;  // by rank; empty where connections need no set-up
    std::vector<bool> connected_;         // by rank
};

}  // namespace fablint
