#include "sockets/socket.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace fablint {

SteadyTime::time_point after(double seconds) {
    return SteadyTime::now() + std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
}

Socket& Socket::operator=(Socket&& other) noexcept {
    if (this != &other) {
        if (fd_ >= 0) close(fd_);
        fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
}

Socket::~Socket() {
    if (fd_ >= 0) close(fd_);
}

int SocketAddress::port() const {
    return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                      : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

SocketAddress socket_address(const std::string& host, int port) {
    SocketAddress address;
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0)
        throw std::runtime_error("'" + host + "' is not an address");
    std::memcpy(&address.storage, list->ai_addr, list->ai_addrlen);
    address.length = list->ai_addrlen;
    freeaddrinfo(list);
    return address;
}

Socket new_socket(int family) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
    return socket;
}

std::pair<Socket, SocketAddress> listening_socket(const std::string& host, int port) {
    SocketAddress own = socket_address(host, port);
    Socket socket = new_socket(own.family());
    // A socket of IPv6 accepts IPv4 as well.
    if (own.family() == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (port != 0) set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(socket.fd(), own.get(), own.length) != 0 || listen(socket.fd(), SOMAXCONN) != 0 ||
        getsockname(socket.fd(), own.get(), &own.length) != 0)
        throw std::runtime_error(std::strerror(errno));
    return {std::move(socket), own};
}

void set_option(const Socket& socket, int level, int option, int value) {
    setsockopt(socket.fd(), level, option, &value, sizeof value);
}

void keep_alive(const Socket& socket) {
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::string end_of_connection(ssize_t received) {
    const bool has_peer_ended = received == 0 || errno == ECONNRESET || errno == EPIPE;
    return has_peer_ended ? process_ended : std::string("its host does not answer: ") + std::strerror(errno);
}

bool wait_until(const Socket& socket, short events, SteadyTime::time_point deadline) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyTime::now());
        if (left.count() <= 0) return false;
        pollfd entry{socket.fd(), events, 0};
        const int ready = poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1'000'000)));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

std::string connect_socket(const Socket& socket, const SocketAddress& remote, SteadyTime::time_point deadline) {
    if (connect(socket.fd(), remote.get(), remote.length) != 0 && errno != EINPROGRESS) return std::strerror(errno);
    if (!wait_until(socket, POLLOUT, deadline)) return "no answer";
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    return error == 0 ? "" : std::strerror(error);
}

std::string send_all(const Socket& socket, const void* data, std::size_t bytes, SteadyTime::time_point deadline) {
    const char* next = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t sent = send(socket.fd(), next, bytes, MSG_NOSIGNAL);
        if (sent >= 0) {
            next += sent;
            bytes -= static_cast<std::size_t>(sent);
        } else if (errno != EAGAIN && errno != EINTR) {
            return std::strerror(errno);
        } else if (!wait_until(socket, POLLOUT, deadline)) {
            return "no answer";
        }
    }
    return "";
}

bool is_same_secret(const std::string& a, const std::string& b) {
    if (a.size() != b.size()) return false;
    volatile unsigned char difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference = static_cast<unsigned char>(difference |
                                                (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
    return difference == 0;
}

}  // namespace fablint
