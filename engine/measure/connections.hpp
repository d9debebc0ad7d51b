// Connections of a transport: addresses of all ranks, and the peers to which this rank is connected.
#pragma once

#include <string>
#include <vector>

#include "ranks/rank_group.hpp"
#include "transports/transport.hpp"

namespace fablint {

class Connections {
  public:
    // Collective: exchanges the addresses, over MPI, where the transport has any.
    Connections(RankGroup& rank_group, Transport& transport);

    // Connects to the peers that are not connected yet; both ends of a pair call it before their first message.
    void connect(const std::vector<int>& peers);

  private:
    RankGroup& rank_group_;
    Transport& transport_;
    std::vector<std::string> addresses_;  // by rank; empty where connections need no set-up
    std::vector<bool> connected_;         // by rank
};

}  // namespace fablint
