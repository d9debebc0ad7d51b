// Sockets of TCP, without waiting: the calls that connections of a transport and of the rendezvous have in common.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <utility>

namespace fablint {

using SteadyTime = std::chrono::steady_clock;

SteadyTime::time_point after(double seconds);  // that many seconds from now

// Owner of a file descriptor.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept;
    ~Socket();

    int fd() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
    int family() const { return storage.ss_family; }
    int port() const;
};

// The functions throw a std::runtime_error with the reason.
SocketAddress socket_address(const std::string& host, int port);  // of a numeric address
Socket new_socket(int family);
// A listening socket of that address, and the address with the port that it got if `port` is 0.
std::pair<Socket, SocketAddress> listening_socket(const std::string& host, int port);

void set_option(const Socket& socket, int level, int option, int value);

// Lets the kernel probe the peer while the connection is idle: a connection that only receives ends 30 s after the loss
// of the peer's host or of the path to it.
void keep_alive(const Socket& socket);

constexpr const char* process_ended = "its process ended";

// Why a connection that only receives has ended, where recv() has returned `received`, which is not positive.
std::string end_of_connection(ssize_t received);

// Waits for events on one socket; false after the deadline.
bool wait_until(const Socket& socket, short events, SteadyTime::time_point deadline);

// Connects to that address. Returns what went wrong, empty for success.
std::string connect_socket(const Socket& socket, const SocketAddress& remote, SteadyTime::time_point deadline);

// Sends all bytes, waiting for the peer where the socket is full. Returns what went wrong, empty for success.
std::string send_all(const Socket& socket, const void* data, std::size_t bytes, SteadyTime::time_point deadline);

// Are the texts equal? Takes the same time wherever they differ.
bool is_same_secret(const std::string& a, const std::string& b);

}  // namespace fablint
