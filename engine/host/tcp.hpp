// The TCP connections of this process: how many segments were sent, and how many of them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fablint {

// Counters of one connection, as the kernel has them since it was made. They wrap at 2^32: only differences count.
struct TcpCounts {
    std::uint32_t sent = 0;      // segments with data, those that were sent again included
    std::uint32_t again = 0;     // segments that were sent again
    std::uint32_t spurious = 0;  // of these, segments that the receiver reported to have had already (DSACK)
    std::uint32_t received = 0;  // segments with data that arrived
    bool knows_spurious = false;
};

struct TcpConnection {
    std::uint64_t socket;  // number of its inode: a descriptor may be used anew, this is not
    std::string local;     // numeric addresses, without ports; IPv4 as such where it is mapped to IPv6
    std::string peer;
    TcpCounts counts;
};

// What getsockopt(TCP_INFO) has returned: the first `length` bytes of the kernel's struct tcp_info. Nothing where the
// kernel is too old to count the segments that are sent (before Linux 4.6).
std::optional<TcpCounts> tcp_counts(const void* info, std::size_t length);

// All TCP connections of this process that are established, by the descriptors in `folder`.
std::vector<TcpConnection> tcp_connections(const std::string& folder = "/proc/self/fd");

struct LocalAddress {
    std::string interface;
    std::string address;
};

// Addresses of this host's interfaces that are up, without the loopback's.
std::vector<LocalAddress> local_addresses();

}  // namespace fablint
