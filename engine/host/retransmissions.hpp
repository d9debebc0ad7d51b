// What TCP sent again while a row was measured, between which hosts: where MPI sends its messages over TCP sockets of
// the ranks. Costs nothing while messages are timed: the kernel's counters are read before and after.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "host/tcp.hpp"
#include "ranks/team.hpp"

namespace fablint {

// Segments of all connections between two addresses in some time.
struct TcpTraffic {
    std::int64_t sent = 0, again = 0, spurious = 0, received = 0;
    bool knows_spurious = true;

    std::int64_t lost() const { return again - spurious; }
    void add(const TcpTraffic& other);
};

using TcpWay = std::pair<std::string, std::string>;  // local address, address of the peer

// What connections did between two readings, by way. Those that were made in between count from their beginning, those
// that were closed in between not at all.
std::map<TcpWay, TcpTraffic> tcp_traffic(const std::vector<TcpConnection>& before,
                                         const std::vector<TcpConnection>& after);

// What one rank did, as text: what Retransmissions gathers. `own` are the addresses of its host.
std::string tcp_report(const std::map<TcpWay, TcpTraffic>& traffic, const std::vector<LocalAddress>& own);

// The reports of all ranks as the row attribute `tcp` (docs/reference/run-format.md); null where there was no traffic.
// `addresses`: per rank, those of its host as `INTERFACE ADDRESS` lines, empty for all but one rank of each host.
Json tcp_json(const std::vector<std::string>& hosts, const std::vector<std::string>& addresses,
              const std::vector<std::string>& reports);

class Retransmissions {
  public:
    explicit Retransmissions(Team& team);  // collective

    void begin();    // reads the counters of this rank
    Json collect();  // collective: the row attribute `tcp` of the time since begin(), on rank 0

  private:
    Team& team_;
    std::vector<LocalAddress> own_;
    std::vector<std::string> addresses_;  // per rank, on rank 0
    std::vector<TcpConnection> before_;
};

}  // namespace fablint
