// TCP connections between the ranks of a run: a listener, and connections to the listeners of other ranks.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sockets/addresses.hpp"
#include "sockets/socket.hpp"

namespace fablint {

// The addresses of `device`: the name of an interface, or a network as 10.1.0.0/16. An empty device means those of
// `interfaces`, or all addresses of the host if these have none. Without any, the loopback address. Throws a usage
// error if the device has no address.
std::vector<LocalAddress> select_addresses(const std::vector<LocalAddress>& all, const std::string& device,
                                           const std::vector<std::string>& interfaces);

// How a listener can be reached. `text()` and `parsed()` are inverse.
struct TcpAddress {
    int port = 0;
    std::string token;  // 32 hexadecimal digits that only the ranks of this run know
    std::vector<std::string> hosts;
    std::string text() const;
    static TcpAddress parsed(const std::string& text);
};

// The connecting rank; the stream is the index of one of several connections of a pair.
struct TcpCaller {
    int rank = 0;
    int stream = 0;
    bool operator<(const TcpCaller& other) const {
        return std::pair(rank, stream) < std::pair(other.rank, other.stream);
    }
};

// Accepts connections in a thread of its own, so that a rank that connects never waits for what the other rank does.
// A connection that does not present the listener's token is closed.
class TcpListener {
  public:
    explicit TcpListener(const std::vector<LocalAddress>& addresses);
    ~TcpListener();
    TcpListener(const TcpListener&) = delete;
    TcpListener& operator=(const TcpListener&) = delete;

    const TcpAddress& address() const { return address_; }
    // Waits for the connection of that caller. Throws a std::runtime_error after `limit_s`.
    Socket take(const TcpCaller& caller, double limit_s);
    // The connections that have arrived and are not taken yet; waits for the first for up to `limit_s`.
    std::map<TcpCaller, Socket> take_all(double limit_s);

  private:
    struct Greeting;
    void serve();
    void admit(Greeting& greeting);

    TcpAddress address_;
    Socket listening_;
    Socket wake_;  // an eventfd that ends the thread
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::map<TcpCaller, Socket> connections_;
    std::thread thread_;
};

// Connects to one of the hosts of `address`, those in a network of an `own` address first. `through_own`: the packets
// leave through the interface of that own address, whatever the routing table says. Throws a std::runtime_error that
// names every address that was tried.
Socket connect_tcp(const TcpAddress& address, const TcpCaller& caller, const std::vector<LocalAddress>& own,
                   bool through_own, double limit_s);

}  // namespace fablint
