#include "sockets/connection_requests.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "sockets/addresses.hpp"
#include "sockets/tcp_connections.hpp"

namespace fablint {

namespace {

constexpr auto longest_pause = std::chrono::seconds(3);      // between two requests of one connection
constexpr auto sample_pause = std::chrono::milliseconds(5);  // in which the library closes the socket and opens another
constexpr int most_samples = 4;                              // of one look: a third of the samples show the socket
constexpr std::uint64_t many_failures = 100;  // since the last look: of a library that repeats requests at once
constexpr std::size_t digits_of_word = 8;

// The kernel prints an address as 32-bit words of its own byte order, and a colon with the port after it.
std::string address_of(const std::string& end) {
    const std::size_t digits = end.find(':');
    std::uint32_t words[4] = {};
    if (digits != digits_of_word && digits != 4 * digits_of_word) return "";
    for (std::size_t at = 0; at < digits; at += digits_of_word)
        words[at / digits_of_word] =
            static_cast<std::uint32_t>(std::strtoul(end.substr(at, digits_of_word).c_str(), nullptr, 16));
    if (digits == digits_of_word) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_addr.s_addr = words[0];
        return address_text(reinterpret_cast<const sockaddr*>(&v4));
    }
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    std::memcpy(&v6.sin6_addr, words, sizeof words);
    return address_text(reinterpret_cast<const sockaddr*>(&v6));
}

}  // namespace

std::map<std::uint64_t, std::string> requested_addresses(std::istream& table) {
    std::map<std::uint64_t, std::string> addresses;
    for (std::string line; std::getline(table, line);) {
        std::istringstream words(line);
        std::string number, local, remote, state, queues, timer, retransmissions, user, timeout;
        std::uint64_t inode = 0;
        if (!(words >> number >> local >> remote >> state >> queues >> timer >> retransmissions >> user >> timeout >>
              inode))
            continue;  // the header
        if (std::strtol(state.c_str(), nullptr, 16) == TCP_SYN_SENT) addresses[inode] = address_of(remote);
    }
    return addresses;
}

std::vector<UnconnectedSocket> unconnected_sockets(const std::string& process) {
    std::vector<UnconnectedSocket> sockets;
    for (const TcpSocket& socket : tcp_sockets(process + "/fd"))
        if (socket.state() == TCP_SYN_SENT || socket.state() == TCP_CLOSE)
            sockets.push_back({socket.inode, socket.state() == TCP_SYN_SENT, ""});
    const auto is_requesting = [](const UnconnectedSocket& socket) { return socket.is_requesting; };
    if (std::none_of(sockets.begin(), sockets.end(), is_requesting)) return sockets;
    std::map<std::uint64_t, std::string> addresses;
    for (const char* const name : {"/net/tcp", "/net/tcp6"}) {
        std::ifstream table(process + name);
        addresses.merge(requested_addresses(table));
    }
    for (UnconnectedSocket& socket : sockets) socket.address = addresses[socket.inode];
    return sockets;
}

std::uint64_t failed_requests(std::istream& table) {
    for (std::string names, values; std::getline(table, names) && std::getline(table, values);) {
        std::istringstream names_of(names), values_of(values);
        std::string name, value;
        while (names_of >> name && values_of >> value)
            if (name == "AttemptFails") return std::strtoull(value.c_str(), nullptr, 10);
    }
    return 0;
}

std::uint64_t failed_requests() {
    std::ifstream table("/proc/self/net/snmp");
    return failed_requests(table);
}

void VainRequests::look(Clock::time_point now) {
    int samples_left = has_many_failures() ? most_samples : 1;
    std::vector<UnconnectedSocket> sockets = sockets_();
    bool has_one = has_request(sockets);
    while (!has_one && --samples_left > 0) {
        std::this_thread::sleep_for(sample_pause);
        sockets = sockets_();
        has_one = has_request(sockets);
    }
    if (is_waiting_ && now - last_ > longest_pause) is_waiting_ = false;
    if (!has_one) return;
    if (!is_waiting_) first_ = now;
    is_waiting_ = true;
    last_ = now;
    address_.clear();
    for (const UnconnectedSocket& socket : sockets)
        if (address_.empty()) address_ = socket.address;
}

// A socket that waits, or one that is new since the last look: its request has failed, or is to come.
bool VainRequests::has_request(const std::vector<UnconnectedSocket>& sockets) {
    std::set<std::uint64_t> inodes;
    bool found = false;
    for (const UnconnectedSocket& socket : sockets) {
        inodes.insert(socket.inode);
        found = found || socket.is_requesting || (known_ && known_->count(socket.inode) == 0);
    }
    known_ = std::move(inodes);
    return found;
}

bool VainRequests::has_many_failures() {
    const std::uint64_t failed = failures_();
    const bool has_many = failed_ && failed >= *failed_ + many_failures;
    failed_ = failed;
    return has_many;
}

void VainRequests::forget() {
    known_.reset();
    failed_.reset();
    is_waiting_ = false;
}

double VainRequests::duration_s() const {
    return is_waiting_ ? std::chrono::duration<double>(last_ - first_).count() : 0.0;
}

}  // namespace fablint
