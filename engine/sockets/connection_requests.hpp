// TCP connections that this process requests in vain: without an answer, or refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fablint {

// Numeric addresses to which sockets in state SYN_SENT request a connection, by inode number of the socket, in the text
// of /proc/net/tcp or /proc/net/tcp6.
std::map<std::uint64_t, std::string> requested_addresses(std::istream& table);

// A TCP socket of this process that is not connected.
struct UnconnectedSocket {
    std::uint64_t inode;
    bool is_requesting;   // it waits for an answer; otherwise its request failed, or it has made none yet
    std::string address;  // to which it requests a connection; empty if not known
};

// `process`: folder of this process below /proc.
std::vector<UnconnectedSocket> unconnected_sockets(const std::string& process = "/proc/self");

// AttemptFails in the text of /proc/net/snmp: TCP connections of all processes of the network namespace that failed
// while they were requested. 0 if the text lacks the counter.
std::uint64_t failed_requests(std::istream& table);
std::uint64_t failed_requests();

// For how long this process has requested connections in vain. A library may repeat requests that are refused, each
// with a new socket: a request within a short time after another one continues it. Such a socket exists for a part of
// the time only; if the kernel has counted many failed requests, one look therefore examines the sockets several times.
// A few are those of other processes.
class VainRequests {
  public:
    using Clock = std::chrono::steady_clock;
    using Sockets = std::function<std::vector<UnconnectedSocket>()>;
    using Failures = std::function<std::uint64_t()>;

    explicit VainRequests(
        Sockets sockets = [] { return unconnected_sockets(); }, Failures failures = [] { return failed_requests(); })
        : sockets_(std::move(sockets)), failures_(std::move(failures)) {}

    void look(Clock::time_point now);
    void forget();
    double duration_s() const;                               // up to the last look; 0 without a request
    const std::string& address() const { return address_; }  // of the last request; empty if not known

  private:
    bool has_request(const std::vector<UnconnectedSocket>& sockets);
    bool has_many_failures();

    Sockets sockets_;
    Failures failures_;
    std::optional<std::uint64_t> failed_;           // of the last look
    std::optional<std::set<std::uint64_t>> known_;  // inodes of the last look
    bool is_waiting_ = false;
    Clock::time_point first_, last_;
    std::string address_;
};

}  // namespace fablint
