#include "sockets/tcp_listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "base/errors.hpp"

namespace fablint {

namespace {

constexpr std::size_t token_digits = 32;
constexpr double greeting_limit_s = 5.0;
constexpr char admitted = 'A';

// What a caller sends first: token, rank and stream as text of a fixed length.
constexpr std::size_t greeting_bytes = token_digits + 2 * 11;

std::string greeting_text(const std::string& token, const TcpCaller& caller) {
    char numbers[2 * 11 + 1];
    std::snprintf(numbers, sizeof numbers, "%11d%11d", caller.rank, caller.stream);
    return token + numbers;
}

std::string random_token() {
    std::array<unsigned char, token_digits / 2> bytes{};
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        throw std::runtime_error(std::string("getrandom: ") + std::strerror(errno));
    std::string text;
    for (const unsigned char byte : bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", byte);
        text += digits;
    }
    return text;
}

// Is the address in the network, as 10.1.0.0/16? False if `network` is not of that form.
bool is_in_network(const std::string& address, const std::string& network) {
    const std::size_t slash = network.find('/');
    if (slash == std::string::npos) return false;
    int prefix = -1;
    const char* const end = network.data() + network.size();
    const auto [rest, error] = std::from_chars(network.data() + slash + 1, end, prefix);
    return error == std::errc() && rest == end && prefix >= 0 &&
           share_prefix(address, network.substr(0, slash), prefix);
}

// The own address from which to connect to `host`: one of the same network, else of the same family; null if none.
const LocalAddress* source_for(const std::string& host, const std::vector<LocalAddress>& own) {
    const LocalAddress* same_family = nullptr;
    for (const LocalAddress& local : own) {
        if (share_prefix(host, local.address, local.prefix)) return &local;
        if (same_family == nullptr && is_ipv6(local.address) == is_ipv6(host)) same_family = &local;
    }
    return same_family;
}

// Connects to one address and presents the token. Returns what went wrong, empty for success.
std::string try_to_connect(Socket& socket, const std::string& host, const TcpAddress& address, const TcpCaller& caller,
                           const LocalAddress* from, SteadyTime::time_point deadline) {
    const SocketAddress remote = socket_address(host, address.port);
    socket = new_socket(remote.family());
    if (from != nullptr) {
        const SocketAddress own = socket_address(from->address, 0);
        if (bind(socket.fd(), own.get(), own.length) != 0) return std::string("bind: ") + std::strerror(errno);
        // Packets to an address of this host take the loopback interface.
        if (from->address != host && setsockopt(socket.fd(), SOL_SOCKET, SO_BINDTODEVICE, from->interface.c_str(),
                                                static_cast<socklen_t>(from->interface.size())) != 0)
            return "binding to " + from->interface + ": " + std::strerror(errno);
    }
    const std::string failure = connect_socket(socket, remote, deadline);
    if (!failure.empty()) return failure;
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    const std::string greeting = greeting_text(address.token, caller);
    if (send(socket.fd(), greeting.data(), greeting.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(greeting.size()))
        return std::string("send: ") + std::strerror(errno);
    char reply = 0;
    if (!wait_until(socket, POLLIN, deadline)) return "connected, and no answer from the rank";
    if (recv(socket.fd(), &reply, 1, 0) != 1 || reply != admitted) return "connected to another program";
    return "";
}

}  // namespace

std::vector<LocalAddress> select_addresses(const std::vector<LocalAddress>& all, const std::string& device,
                                           const std::vector<std::string>& interfaces) {
    std::vector<LocalAddress> usable, selected;
    std::copy_if(all.begin(), all.end(), std::back_inserter(usable),
                 [](const LocalAddress& local) { return !is_link_local(local.address); });
    if (usable.empty() || !device.empty()) usable.push_back({"lo", "127.0.0.1", 8});
    const auto suits = [&](const LocalAddress& local) {
        if (device.empty()) return std::find(interfaces.begin(), interfaces.end(), local.interface) != interfaces.end();
        return local.interface == device || is_in_network(local.address, device);
    };
    std::copy_if(usable.begin(), usable.end(), std::back_inserter(selected), suits);
    if (!selected.empty()) return selected;
    if (device.empty()) return usable;
    std::string known;
    for (const LocalAddress& local : usable)
        known += (known.empty() ? "" : ", ") + local.interface + " " + local.address;
    const bool is_link_local_only = std::any_of(all.begin(), all.end(), suits);
    throw usage_error("--device " + device +
                      (is_link_local_only
                           ? " has link-local addresses of IPv6 only on this host, which tcp does not use"
                           : " has no IP address on this host") +
                      ": choose an interface or a network of " + known);
}

std::string TcpAddress::text() const {
    std::string text = std::to_string(port) + " " + token;
    for (const std::string& host : hosts) text += " " + host;
    return text;
}

TcpAddress TcpAddress::parsed(const std::string& text) {
    TcpAddress address;
    std::istringstream words(text);
    words >> address.port >> address.token;
    for (std::string host; words >> host;) address.hosts.push_back(host);
    return address;
}

// A connection that has not presented its token yet.
struct TcpListener::Greeting {
    Socket socket;
    SteadyTime::time_point deadline;
    std::string text;
};

TcpListener::TcpListener(const std::vector<LocalAddress>& addresses) {
    address_.token = random_token();
    for (const LocalAddress& local : addresses) address_.hosts.push_back(local.address);
    const bool v6 = std::any_of(addresses.begin(), addresses.end(),
                                [](const LocalAddress& local) { return is_ipv6(local.address); });
    try {
        auto [socket, own] = listening_socket(v6 ? "::" : "0.0.0.0", 0);
        listening_ = std::move(socket);
        address_.port = own.port();
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(std::string("no TCP port to listen on: ") + error.what());
    }
    wake_ = Socket(eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { serve(); });
}

TcpListener::~TcpListener() {
    const std::uint64_t one = 1;
    if (write(wake_.fd(), &one, sizeof one) != sizeof one) std::terminate();  // an eventfd of value 0 takes any number
    thread_.join();
}

void TcpListener::serve() {
    std::vector<Greeting> greetings;
    for (;;) {
        std::vector<pollfd> entries = {{wake_.fd(), POLLIN, 0}, {listening_.fd(), POLLIN, 0}};
        for (const Greeting& greeting : greetings) entries.push_back({greeting.socket.fd(), POLLIN, 0});
        poll(entries.data(), entries.size(), greetings.empty() ? -1 : 200);
        if (entries[0].revents != 0) return;
        for (Greeting& greeting : greetings) admit(greeting);
        const auto is_over = [](const Greeting& greeting) {
            return !greeting.socket.is_open() || SteadyTime::now() > greeting.deadline;
        };
        greetings.erase(std::remove_if(greetings.begin(), greetings.end(), is_over), greetings.end());
        if (entries[1].revents == 0) continue;
        Socket socket(accept4(listening_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket.is_open()) greetings.push_back({std::move(socket), after(greeting_limit_s), ""});
    }
}

// Reads what has arrived of the greeting. When it is complete, keeps the connection, or closes it if the token is
// wrong.
void TcpListener::admit(Greeting& greeting) {
    char text[greeting_bytes];
    const ssize_t got = recv(greeting.socket.fd(), text, greeting_bytes - greeting.text.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) greeting.text.append(text, static_cast<std::size_t>(got));
    if (got > 0 && greeting.text.size() < greeting_bytes) return;
    Socket socket = std::move(greeting.socket);
    TcpCaller caller;
    if (got <= 0 || !is_same_secret(greeting.text.substr(0, token_digits), address_.token) ||
        std::sscanf(greeting.text.c_str() + token_digits, "%11d%11d", &caller.rank, &caller.stream) != 2)
        return;
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    if (send(socket.fd(), &admitted, 1, MSG_NOSIGNAL) != 1) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    connections_[caller] = std::move(socket);
    arrived_.notify_all();
}

Socket TcpListener::take(const TcpCaller& caller, double limit_s) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool arrived =
        arrived_.wait_for(lock, std::chrono::duration<double>(limit_s), [&] { return connections_.count(caller) > 0; });
    if (!arrived)
        throw std::runtime_error("no TCP connection from the rank within " + std::to_string(static_cast<int>(limit_s)) +
                                 " s");
    Socket socket = std::move(connections_[caller]);
    connections_.erase(caller);
    return socket;
}

std::map<TcpCaller, Socket> TcpListener::take_all(double limit_s) {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_.wait_for(lock, std::chrono::duration<double>(limit_s), [&] { return !connections_.empty(); });
    return std::exchange(connections_, {});
}

Socket connect_tcp(const TcpAddress& address, const TcpCaller& caller, const std::vector<LocalAddress>& own,
                   bool through_own, double limit_s) {
    const auto is_neighbour = [&](const std::string& host) {
        return std::any_of(own.begin(), own.end(),
                           [&](const LocalAddress& local) { return share_prefix(host, local.address, local.prefix); });
    };
    std::vector<std::string> hosts = address.hosts;
    std::stable_partition(hosts.begin(), hosts.end(), is_neighbour);
    const auto deadline = after(limit_s);
    std::string tried;
    for (const std::string& host : hosts) {
        const LocalAddress* from = through_own ? source_for(host, own) : nullptr;
        const auto last = std::min(deadline, after(limit_s / static_cast<double>(hosts.size())));
        Socket socket;
        const std::string failure = try_to_connect(socket, host, address, caller, from, last);
        if (failure.empty()) return socket;
        tried += (tried.empty() ? "" : "; ") + host + ": " + failure;
    }
    throw std::runtime_error("no TCP connection (" + tried + ")");
}

}  // namespace fablint
