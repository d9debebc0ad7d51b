#include "ranks/socket_control.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "ranks/failure_report.hpp"
#include "sockets/connect_limit.hpp"

namespace fablint {

namespace {

constexpr double send_limit_s = 600.0;   // the receiver may be busy with a round
constexpr double longest_sleep_s = 0.2;  // of a rank that only waits
constexpr int spins = 200;               // before such a rank sleeps
constexpr std::size_t read_bytes = 64 << 10;

// Before each message: its length and tag.
constexpr std::size_t header_bytes = sizeof(std::int64_t) + sizeof(std::int32_t);

// Every pair of ranks may take two descriptors.
void raise_limit_of_descriptors() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

std::string own_host() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

void sleep_until_readable(const Socket& socket, double limit_s) {
    pollfd entry{socket.fd(), POLLIN, 0};
    const timespec limit{0, static_cast<long>(limit_s * 1e9)};
    ppoll(&entry, 1, &limit, nullptr);
}

}  // namespace

SocketControl::SocketControl(const RendezvousOptions& options)
    : rank_(options.rank), own_(select_addresses(local_addresses(), "", {})), listener_(own_) {
    raise_limit_of_descriptors();
    joined_ = join_ranks(options, own_host(), listener_.address().text());
    incoming_.resize(joined_.hosts.size());
    liveness_ = std::make_unique<Liveness>(rank_, std::move(joined_.connections),
                                           [this](const Failure& failure) { end(failure); });
}

void SocketControl::send(int to, int tag, const void* data, std::size_t bytes) {
    const auto length = static_cast<std::int64_t>(bytes);
    std::string message(header_bytes, '\0');
    std::memcpy(message.data(), &length, sizeof length);
    std::memcpy(message.data() + sizeof length, &tag, sizeof tag);
    message.append(static_cast<const char*>(data), bytes);
    const std::string failure = send_all(connection_to(to), message.data(), message.size(), after(send_limit_s));
    if (!failure.empty()) give_up(to, "no control message to it: " + failure);
}

const Socket& SocketControl::connection_to(int to) {
    Socket& socket = outgoing_[to];
    if (!socket.is_open()) try {
            const TcpAddress address = TcpAddress::parsed(joined_.addresses[static_cast<std::size_t>(to)]);
            socket = connect_tcp(address, {rank_, 0}, own_, false, connect_limit_s);
        } catch (const std::runtime_error& error) {
            give_up(to, error.what() + (" from " + host_name()) + ": allow TCP between the two hosts");
        }
    return socket;
}

void SocketControl::exchange(int to, const void* sent, int from, void* received, std::size_t bytes, int tag,
                             const Idle& idle) {
    send(to, tag, sent, bytes);
    receive(from, tag, received, bytes, idle);
}

void SocketControl::receive(int from, int tag, void* data, std::size_t bytes, const Idle& idle) {
    Incoming& incoming = incoming_[static_cast<std::size_t>(from)];
    for (int spin = 0;; ++spin) {
        if (const auto message = find(incoming, tag); message != incoming.messages.end()) {
            if (message->content.size() != bytes) throw std::runtime_error("a control message has the wrong length");
            std::memcpy(data, message->content.data(), bytes);
            incoming.messages.erase(message);
            return;
        }
        if (read(incoming)) continue;
        if (!incoming.end.empty()) give_up(from, incoming.end);
        const double pause_s = idle ? idle() : spin < spins ? 0.0 : longest_sleep_s;
        if (!incoming.socket.is_open()) {
            accept(pause_s);
        } else if (pause_s > 0.0) {
            sleep_until_readable(incoming.socket, pause_s);
        }
    }
}

int SocketControl::sender_of_arrived(int from, int tag) {
    accept(0.0);
    for (int rank = 0; rank < size(); ++rank) {
        if (from != any_rank && rank != from) continue;
        Incoming& incoming = incoming_[static_cast<std::size_t>(rank)];
        while (read(incoming)) {
        }
        if (find(incoming, tag) != incoming.messages.end()) return rank;
    }
    return -1;
}

// Takes the connections of ranks that have sent their first message; waits for one for up to `limit_s`.
void SocketControl::accept(double limit_s) {
    for (auto& [caller, socket] : listener_.take_all(limit_s)) {
        if (caller.rank < 0 || caller.rank >= size()) continue;
        Incoming& incoming = incoming_[static_cast<std::size_t>(caller.rank)];
        if (incoming.socket.is_open()) continue;
        keep_alive(socket);
        incoming.socket = std::move(socket);
    }
}

// Reads what has arrived, without waiting; false if nothing has.
bool SocketControl::read(Incoming& incoming) {
    if (!incoming.socket.is_open() || !incoming.end.empty()) return false;
    char text[read_bytes];
    const ssize_t got = recv(incoming.socket.fd(), text, sizeof text, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
        incoming.end = end_of_connection(got);
        return false;
    }
    incoming.unread.append(text, static_cast<std::size_t>(got));
    std::size_t at = 0;
    for (std::int64_t length = 0; incoming.unread.size() - at >= header_bytes;) {
        Message message{};
        std::memcpy(&length, incoming.unread.data() + at, sizeof length);
        std::memcpy(&message.tag, incoming.unread.data() + at + sizeof length, sizeof message.tag);
        const auto bytes = static_cast<std::size_t>(length);
        if (incoming.unread.size() - at - header_bytes < bytes) break;
        message.content = incoming.unread.substr(at + header_bytes, bytes);
        incoming.messages.push_back(std::move(message));
        at += header_bytes + bytes;
    }
    incoming.unread.erase(0, at);
    return true;
}

std::deque<SocketControl::Message>::iterator SocketControl::find(Incoming& incoming, int tag) {
    return std::find_if(incoming.messages.begin(), incoming.messages.end(),
                        [tag](const Message& message) { return message.tag == tag; });
}

void SocketControl::on_failure(std::function<void(const Failure&)> handler) {
    if (!handler) handler = [this](const Failure& failure) { end(failure); };
    liveness_->set_handler(std::move(handler));
}

void SocketControl::announce(int rank, const std::string& reason) { liveness_->announce(rank, reason); }

void SocketControl::end(const Failure& failure) {
    become_the_last_thread();
    if (!failure.reported)
        print_failure(
            {number(failure.rank), joined_.hosts[static_cast<std::size_t>(failure.rank)], -1, "none", failure.reason});
    end_incomplete();
}

// Of a rank that has ended the connection to rank 0 gives notice as well, and with it the handler of on_failure.
void SocketControl::give_up(int rank, const std::string& reason) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    become_the_last_thread();
    announce(rank, reason);
    // Of a lost connection, this rank or the path may as well be the cause.
    const std::string partner = reason == process_ended ? "none" : std::to_string(number(rank_));
    print_failure({number(rank), joined_.hosts[static_cast<std::size_t>(rank)], -1, partner, reason});
    end_incomplete();
}

void SocketControl::abort(int status) {
    std::fflush(nullptr);
    _exit(status);
}

}  // namespace fablint
