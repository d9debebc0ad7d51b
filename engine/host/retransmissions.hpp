// TCP retransmissions between hosts while a row is measured, where MPI uses TCP sockets of the ranks. The kernel's
// counters are read before and after the row, not while messages are timed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranks/rank_group.hpp"
#include "sockets/addresses.hpp"
#include "sockets/tcp_connections.hpp"

namespace fablint {

// Segments of all connections between two addresses in a period.
struct TcpTraffic {
    std::int64_t sent = 0, retransmitted = 0, spurious = 0, received = 0;
    bool knows_spurious = true;

    std::int64_t lost() const { return retransmitted - spurious; }
    void add(const TcpTraffic& other);
};

using TcpPath = std::pair<std::string, std::string>;  // local address, address of the peer

// Traffic between two readings, by pair of addresses. Connections opened in between count from their start; connections
// closed in between do not count.
std::map<TcpPath, TcpTraffic> tcp_traffic(const std::vector<TcpConnection>& before,
                                          const std::vector<TcpConnection>& after);

// The traffic of one rank as text, which Retransmissions gathers. `own`: the addresses of the rank's host.
std::string tcp_report(const std::map<TcpPath, TcpTraffic>& traffic, const std::vector<LocalAddress>& own);

// Segments with data between hosts (docs/reference/run-format.md).
struct TcpSegments {
    std::vector<std::string> ends;             // HOST/INTERFACE
    std::vector<std::int64_t> sent, received;  // by each end
    std::vector<std::int64_t> pairs;           // from, to, sent, again and spurious of each pair with losses
    std::int64_t omitted = 0;
    bool knows_spurious = true;
};

// The sum of the reports of all ranks; none where there was no traffic. `addresses`: those of each host, as
// `INTERFACE ADDRESS` lines.
std::optional<TcpSegments> tcp_segments(const std::vector<std::string>& hosts,
                                        const std::vector<std::string>& addresses,
                                        const std::vector<std::string>& reports);

class Retransmissions {
  public:
    explicit Retransmissions(RankGroup& rank_group);

    void begin();  // reads the counters of this rank
    // Collective: the segments since begin(), on rank 0; none where there was no traffic.
    std::optional<TcpSegments> collect();

  private:
    RankGroup& rank_group_;
    std::vector<LocalAddress> own_;
    std::vector<TcpConnection> before_;
};

}  // namespace fablint
