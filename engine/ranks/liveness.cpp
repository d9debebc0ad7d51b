#include "ranks/liveness.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <exception>

namespace fablint {

namespace {

constexpr const char* goodbye = "goodbye";
constexpr const char* failed = "failed ";
constexpr double send_limit_s = 1.0;
constexpr std::size_t longest_line = 1024;

}  // namespace

Liveness::Liveness(int rank, std::vector<Socket> connections, Handler handler) : handler_(std::move(handler)) {
    for (std::size_t index = 0; index < connections.size(); ++index)
        if (connections[index].is_open())
            connections_.push_back({rank == 0 ? static_cast<int>(index) : 0, std::move(connections[index]), ""});
    wake_ = Socket(eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { watch(); });
}

Liveness::~Liveness() {
    const std::uint64_t one = 1;
    if (write(wake_.fd(), &one, sizeof one) != sizeof one) std::terminate();  // an eventfd of value 0 takes any number
    thread_.join();
    send_to_all(std::string(goodbye) + "\n");
}

void Liveness::set_handler(Handler handler) {
    const std::lock_guard<std::mutex> lock(mutex_);
    handler_ = std::move(handler);
}

void Liveness::announce(int rank, const std::string& reason) {
    send_to_all(failed + std::to_string(rank) + " " + reason.substr(0, longest_line / 2) + "\n");
}

void Liveness::send_to_all(const std::string& line) {
    for (const Connection& connection : connections_)
        if (connection.socket.is_open()) send_all(connection.socket, line.data(), line.size(), after(send_limit_s));
}

void Liveness::watch() {
    for (;;) {
        std::vector<pollfd> entries = {{wake_.fd(), POLLIN, 0}};
        for (const Connection& connection : connections_)
            entries.push_back({connection.socket.fd(), POLLIN, 0});  // a closed one is -1, which poll omits
        poll(entries.data(), entries.size(), -1);
        if (entries[0].revents != 0) return;
        for (std::size_t i = 0; i < connections_.size(); ++i)
            if (entries[i + 1].revents != 0) read(connections_[i]);
    }
}

void Liveness::read(Connection& connection) {
    char text[longest_line];
    const ssize_t got = recv(connection.socket.fd(), text, sizeof text, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const std::string end = got > 0 ? "" : end_of_connection(got);
    if (got > 0) connection.text.append(text, static_cast<std::size_t>(got));
    for (std::size_t newline = 0; (newline = connection.text.find('\n')) != std::string::npos;) {
        const std::string line = connection.text.substr(0, newline);
        connection.text.erase(0, newline + 1);
        take(connection, line);
        if (!connection.socket.is_open()) return;
    }
    if (got > 0) return;
    connection.socket = Socket();
    fail({connection.rank, end, false});
}

void Liveness::take(Connection& connection, const std::string& line) {
    if (line == goodbye) {
        connection.socket = Socket();
        return;
    }
    int rank = connection.rank;
    std::size_t reason = line.size();
    if (line.rfind(failed, 0) == 0) {
        const char* const begin = line.data() + std::string(failed).size();
        reason = static_cast<std::size_t>(std::from_chars(begin, line.data() + line.size(), rank).ptr - line.data());
    }
    fail({rank, line.substr(std::min(reason + 1, line.size())), true});
}

void Liveness::fail(const Failure& failure) {
    if (connections_.size() > 1) announce(failure.rank, failure.reason);
    // The handler ends the process. Its owner waits for the lock before it is destroyed.
    const std::lock_guard<std::mutex> lock(mutex_);
    handler_(failure);
}

}  // namespace fablint
