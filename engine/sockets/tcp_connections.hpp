// TCP connections of this process, with the numbers of sent and retransmitted segments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fablint {

// A TCP socket of this process, connected or not.
struct TcpSocket {
    int descriptor;
    std::uint64_t inode;                  // not reused, in contrast to a descriptor
    std::array<unsigned char, 220> info;  // the first members of the kernel's struct tcp_info
    std::size_t length;                   // of what the kernel has filled
    int state() const { return info[0]; }
};

// Found by the descriptors in `folder`.
std::vector<TcpSocket> tcp_sockets(const std::string& folder = "/proc/self/fd");

// The kernel's counters of one connection since it was opened. They wrap at 2^32: only differences are meaningful.
struct TcpCounts {
    std::uint32_t sent = 0;           // segments with data, retransmissions included
    std::uint32_t retransmitted = 0;  // retransmitted segments
    std::uint32_t spurious = 0;       // retransmissions of segments that had arrived (DSACK)
    std::uint32_t received = 0;       // segments with data that arrived
    bool knows_spurious = false;
};

struct TcpConnection {
    std::uint64_t socket;  // inode number
    std::string local;     // numeric addresses without ports; IPv4-mapped IPv6 addresses as IPv4
    std::string peer;
    TcpCounts counts;
};

// Counters from the result of getsockopt(TCP_INFO): the first `length` bytes of the kernel's struct tcp_info. Nothing
// if the kernel does not count sent segments (before Linux 4.6).
std::optional<TcpCounts> tcp_counts(const void* info, std::size_t length);

// All established TCP connections of this process, found by the descriptors in `folder`.
std::vector<TcpConnection> tcp_connections(const std::string& folder = "/proc/self/fd");

}  // namespace fablint
