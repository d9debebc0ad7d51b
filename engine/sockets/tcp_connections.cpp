#include "sockets/tcp_connections.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <tuple>

#include "base/sysfs.hpp"
#include "sockets/addresses.hpp"

namespace fablint {

namespace {

// Offsets in struct tcp_info of include/uapi/linux/tcp.h. The kernel appends members and moves none; the headers of the
// machine that builds the engine may be older than its kernel, and those of libc lack most members.
constexpr std::size_t total_retrans = 100;  // u32
constexpr std::size_t data_segs_in = 152;   // u32, since Linux 4.6
constexpr std::size_t data_segs_out = 156;  // u32, since Linux 4.6
constexpr std::size_t dsack_dups = 216;     // u32, since Linux 4.19
static_assert(dsack_dups + sizeof(std::uint32_t) == std::tuple_size<decltype(TcpSocket::info)>::value);

std::uint32_t number_at(const void* info, std::size_t offset) {
    std::uint32_t value = 0;
    std::memcpy(&value, static_cast<const unsigned char*>(info) + offset, sizeof value);
    return value;
}

using NameOfEnd = int (*)(int, sockaddr*, socklen_t*);

std::string endpoint_of(int descriptor, NameOfEnd name_of_end) {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    return name_of_end(descriptor, address, &length) == 0 ? address_text(address) : "";
}

std::optional<TcpSocket> tcp_socket(int descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
    TcpSocket socket{descriptor, static_cast<std::uint64_t>(status.st_ino), {}, 0};
    auto length = static_cast<socklen_t>(socket.info.size());
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, socket.info.data(), &length) != 0) return std::nullopt;
    socket.length = length;
    return socket;
}

std::optional<TcpConnection> connection_of(const TcpSocket& socket) {
    if (socket.state() != TCP_ESTABLISHED) return std::nullopt;  // listening sockets fill the structure differently
    const std::optional<TcpCounts> counts = tcp_counts(socket.info.data(), socket.length);
    const std::string local = endpoint_of(socket.descriptor, getsockname);
    const std::string peer = endpoint_of(socket.descriptor, getpeername);
    if (!counts || local.empty() || peer.empty()) return std::nullopt;
    return TcpConnection{socket.inode, local, peer, *counts};
}

}  // namespace

std::optional<TcpCounts> tcp_counts(const void* info, std::size_t length) {
    if (length < data_segs_out + sizeof(std::uint32_t)) return std::nullopt;
    TcpCounts counts;
    counts.sent = number_at(info, data_segs_out);
    counts.retransmitted = number_at(info, total_retrans);
    counts.received = number_at(info, data_segs_in);
    counts.knows_spurious = length >= dsack_dups + sizeof(std::uint32_t);
    if (counts.knows_spurious) counts.spurious = number_at(info, dsack_dups);
    return counts;
}

std::vector<TcpSocket> tcp_sockets(const std::string& folder) {
    std::vector<TcpSocket> sockets;
    for (const auto& entry : entries(folder))
        if (const auto socket = tcp_socket(std::atoi(entry.filename().c_str()))) sockets.push_back(*socket);
    return sockets;
}

std::vector<TcpConnection> tcp_connections(const std::string& folder) {
    std::vector<TcpConnection> connections;
    for (const TcpSocket& socket : tcp_sockets(folder))
        if (const auto connection = connection_of(socket)) connections.push_back(*connection);
    return connections;
}

}  // namespace fablint
