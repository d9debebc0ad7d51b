#include "ranks/rendezvous.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/errors.hpp"
#include "base/sysfs.hpp"
#include "sockets/addresses.hpp"

namespace fablint {

namespace {

constexpr const char* greeting = "fablint-join";
constexpr const char* welcome = "joined";
constexpr const char* refusal = "refused";
constexpr double request_limit_s = 5.0;   // for a process that connected to send its request
constexpr std::size_t most_guests = 512;  // connections without a request at once
constexpr std::size_t shortest_token = 16;
constexpr std::size_t longest_token = 256;

// -1 unless the word is a whole number from 0.
int number(const std::string& word) {
    int value = 0;
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, value);
    return error == std::errc() && rest == end && value >= 0 ? value : -1;
}

std::string place_of(const RendezvousOptions& options) {
    return (is_ipv6(options.host) ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
}

// Numeric addresses that a host has on this host, `own`.
std::vector<std::string> resolved(const std::string& host, const std::string& own) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int failure = getaddrinfo(host.c_str(), nullptr, &hints, &list);
    if (failure != 0)
        throw usage_error("--rendezvous: " + own + " finds no address of " + host + ": " + gai_strerror(failure));
    std::vector<std::string> addresses;
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next)
        addresses.push_back(address_text(entry->ai_addr));
    freeaddrinfo(list);
    // As it was written: a link-local address needs its interface (fe80::1%eth0), which address_text() omits.
    return is_ipv6(host) ? std::vector{host} : addresses;
}

bool is_numeric(const std::string& host) {
    return host.find_first_not_of("0123456789.") == std::string::npos || is_ipv6(host);
}

// Prints what this rank waits for, at intervals that double: the front end ends a start that cannot succeed.
class WaitingReport {
  public:
    WaitingReport(int rank, const std::string& host)
        : prefix_("rank " + std::to_string(rank) + " (" + host + "): "), begin_(SteadyTime::now()) {}

    void print_if_due(const std::string& reason) {
        const std::chrono::duration<double> waited = SteadyTime::now() - begin_;
        if (waited < next_) return;
        next_ = 2 * waited;
        std::fprintf(stderr, "fablint-engine: waiting: %s%s\n", prefix_.c_str(), reason.c_str());
    }

  private:
    std::string prefix_;
    SteadyTime::time_point begin_;
    std::chrono::duration<double> next_{1.0};
};

// ---- rank 0

class RendezvousServer {
  public:
    RendezvousServer(const RendezvousOptions& options, const std::string& host, const std::string& address)
        : options_(options), listening_(listen_at(options)), report_(0, host) {
        const auto ranks = static_cast<std::size_t>(options.ranks);
        joined_.hosts.resize(ranks);
        joined_.addresses.resize(ranks);
        joined_.connections.resize(ranks);
        joined_.hosts[0] = host;
        joined_.addresses[0] = address;
    }

    JoinedRanks run() {
        const auto deadline = after(options_.limit_s);
        while (is_incomplete()) {
            if (SteadyTime::now() > deadline) refuse_all();
            look();
            if (is_incomplete()) report_.print_if_due(absence());
        }
        std::string table;
        for (std::size_t rank = 0; rank < joined_.hosts.size(); ++rank)
            table += joined_.hosts[rank] + " " + joined_.addresses[rank] + "\n";
        const std::string answer = std::string(welcome) + " " + std::to_string(table.size()) + "\n" + table;
        for (std::size_t rank = 1; rank < joined_.connections.size(); ++rank) {
            const Socket& connection = joined_.connections[rank];
            const std::string failure = send_all(connection, answer.data(), answer.size(), after(request_limit_s));
            if (!failure.empty())
                throw incomplete_error("rank " + std::to_string(rank) + " (" + joined_.hosts[rank] +
                                       ") ended while the ranks joined: " + failure);
        }
        return std::move(joined_);
    }

  private:
    // A process that has not sent its whole request yet.
    struct Guest {
        Socket socket;
        SteadyTime::time_point deadline;
        std::string text;
    };

    static Socket listen_at(const RendezvousOptions& options) {
        // The address that a name has on this host may be another one than elsewhere: all addresses are used.
        const std::string host = is_numeric(options.host) ? options.host : "::";
        try {
            return listening_socket(host, options.port).first;
        } catch (const std::runtime_error& error) {
            if (host != "::") throw usage_error("--rendezvous " + place_of(options) + ": " + error.what());
        }
        try {  // a host without IPv6
            return listening_socket("0.0.0.0", options.port).first;
        } catch (const std::runtime_error& error) {
            throw usage_error("--rendezvous " + place_of(options) + ": " + error.what());
        }
    }

    std::vector<int> missing() const {
        std::vector<int> ranks;
        for (std::size_t rank = 1; rank < joined_.connections.size(); ++rank)
            if (!joined_.connections[rank].is_open()) ranks.push_back(static_cast<int>(rank));
        return ranks;
    }

    bool is_incomplete() const { return !missing().empty(); }

    std::string absence() const {
        const std::vector<int> ranks = missing();
        return (ranks.size() == 1 ? "rank " : "ranks ") + fold(ranks) + " of " + std::to_string(options_.ranks) +
               " did not join at " + place_of(options_);
    }

    [[noreturn]] void refuse_all() {
        const std::string reason = absence() + " within " + std::to_string(std::lround(options_.limit_s)) + " s";
        for (const Socket& connection : joined_.connections)
            if (connection.is_open()) refuse(connection, reason);
        throw incomplete_error(reason);
    }

    static void refuse(const Socket& socket, const std::string& reason) {
        const std::string line = std::string(refusal) + " " + reason + "\n";
        send_all(socket, line.data(), line.size(), SteadyTime::now());
    }

    void look() {
        std::vector<pollfd> entries = {{listening_.fd(), POLLIN, 0}};
        for (const Guest& guest : guests_) entries.push_back({guest.socket.fd(), POLLIN, 0});
        for (const Socket& connection : joined_.connections)
            if (connection.is_open()) entries.push_back({connection.fd(), POLLRDHUP, 0});
        poll(entries.data(), entries.size(), 200);
        for (Guest& guest : guests_) read(guest);
        const auto is_over = [](const Guest& guest) {
            return !guest.socket.is_open() || SteadyTime::now() > guest.deadline;
        };
        guests_.erase(std::remove_if(guests_.begin(), guests_.end(), is_over), guests_.end());
        // A rank that has ended may be started again.
        for (Socket& connection : joined_.connections) {
            pollfd entry{connection.fd(), POLLRDHUP, 0};
            if (connection.is_open() && poll(&entry, 1, 0) > 0) connection = Socket();
        }
        for (;;) {
            Socket socket(accept4(listening_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (!socket.is_open()) break;
            if (guests_.size() == most_guests) guests_.erase(guests_.begin());
            guests_.push_back({std::move(socket), after(request_limit_s), ""});
        }
    }

    // Reads what has arrived of a request; when its line is complete, the rank has joined or is refused.
    void read(Guest& guest) {
        char text[JoinRequest::longest];
        const ssize_t got = recv(guest.socket.fd(), text, sizeof text - guest.text.size(), 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got > 0) guest.text.append(text, static_cast<std::size_t>(got));
        const std::size_t end = guest.text.find('\n');
        if (got > 0 && end == std::string::npos && guest.text.size() < JoinRequest::longest) return;
        Socket socket = std::move(guest.socket);
        const std::optional<JoinRequest> request = JoinRequest::parsed(guest.text.substr(0, end));
        if (end == std::string::npos || !request) return;  // another program
        const std::string reason = refusal_of(*request);
        if (!reason.empty()) return refuse(socket, reason);
        const auto rank = static_cast<std::size_t>(request->rank);
        joined_.hosts[rank] = request->host;
        joined_.addresses[rank] = request->address;
        keep_alive(socket);
        joined_.connections[rank] = std::move(socket);
    }

    // Why a process may not join; empty if it may. The token is compared first: a stranger learns nothing else.
    std::string refusal_of(const JoinRequest& request) const {
        if (!is_same_secret(request.token, options_.token)) return "it has another token";
        if (request.ranks != options_.ranks)
            return "it was started with --ranks " + std::to_string(request.ranks) + ", rank 0 with --ranks " +
                   std::to_string(options_.ranks);
        const auto rank = static_cast<std::size_t>(request.rank);
        if (rank == 0 || joined_.connections[rank].is_open())
            return "another process has joined as this rank, on " + joined_.hosts[rank];
        return "";
    }

    RendezvousOptions options_;
    Socket listening_;
    WaitingReport report_;
    JoinedRanks joined_;
    std::vector<Guest> guests_;
};

// ---- the other ranks

// Reads up to the end of a line, or `bytes` bytes if they are given. Throws a std::runtime_error.
std::string read_reply(const Socket& socket, std::optional<std::size_t> bytes, SteadyTime::time_point deadline) {
    std::string text;
    while (bytes ? text.size() < *bytes : text.find('\n') == std::string::npos) {
        if (text.size() > JoinRequest::longest && !bytes) throw std::runtime_error("another program listens there");
        if (!wait_until(socket, POLLIN, deadline)) throw std::runtime_error("no answer");
        std::string part(bytes ? std::min<std::size_t>(*bytes - text.size(), 1 << 16) : 1, '\0');
        const ssize_t got = recv(socket.fd(), part.data(), part.size(), 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got <= 0) throw std::runtime_error("the connection was closed by another program, or rank 0 ended");
        text.append(part, 0, static_cast<std::size_t>(got));
    }
    return text;
}

// Connects to rank 0, which may be started later: tries until the deadline.
Socket connect_to_rank_0(const RendezvousOptions& options, const std::string& host, SteadyTime::time_point deadline) {
    WaitingReport report(options.rank, host);
    std::string tried;
    const std::vector<std::string> addresses = resolved(options.host, host);
    do {
        tried.clear();
        for (const std::string& address : addresses) {
            const SocketAddress remote = socket_address(address, options.port);
            Socket socket = new_socket(remote.family());
            const std::string failure = connect_socket(socket, remote, std::min(deadline, after(request_limit_s)));
            if (failure.empty()) return socket;
            tried += (tried.empty() ? "" : "; ") + address + ": " + failure;
        }
        report.print_if_due("no connection to rank 0 at " + place_of(options) + " (" + tried + ")");
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } while (SteadyTime::now() < deadline);
    throw incomplete_error("rank " + std::to_string(options.rank) + " (" + host + ") found no rank 0 at " +
                           place_of(options) + " within " + std::to_string(std::lround(options.limit_s)) + " s (" +
                           tried + ")");
}

JoinedRanks parse_table(const std::string& table, int ranks) {
    JoinedRanks joined;
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t blank = std::min(line.find(' '), line.size() - 1);
        joined.hosts.push_back(line.substr(0, blank));
        joined.addresses.push_back(line.substr(blank + 1));
    }
    if (joined.hosts.size() != static_cast<std::size_t>(ranks)) throw std::runtime_error("another program answered");
    return joined;
}

JoinedRanks join(const RendezvousOptions& options, const JoinRequest& request) {
    // Rank 0 reports missing ranks to those that have joined: it ends first.
    const auto deadline = after(options.limit_s + request_limit_s);
    Socket socket = connect_to_rank_0(options, request.host, after(options.limit_s));
    try {
        const std::string line = request.text();
        const std::string failure = send_all(socket, line.data(), line.size(), deadline);
        if (!failure.empty()) throw std::runtime_error(failure);
        std::istringstream reply(read_reply(socket, std::nullopt, deadline));
        std::string word;
        reply >> word;
        if (word == refusal) {
            std::string reason;
            std::getline(reply >> std::ws, reason);
            const bool is_late = reason.find(" did not join ") != std::string::npos;
            throw is_late ? incomplete_error(reason)
                          : usage_error("rank 0 at " + place_of(options) + " refuses rank " +
                                        std::to_string(options.rank) + " (" + request.host + "): " + reason);
        }
        std::size_t bytes = 0;
        if (word != welcome || !(reply >> bytes) ||
            bytes > static_cast<std::size_t>(options.ranks) * JoinRequest::longest)
            throw std::runtime_error("another program listens there");
        JoinedRanks joined = parse_table(read_reply(socket, bytes, deadline), options.ranks);
        keep_alive(socket);
        joined.connections.push_back(std::move(socket));
        return joined;
    } catch (const Error&) {
        throw;
    } catch (const std::runtime_error& error) {
        throw incomplete_error("rank " + std::to_string(options.rank) + " (" + request.host + ") cannot join at " +
                               place_of(options) + ": " + error.what());
    }
}

}  // namespace

RendezvousOptions rendezvous_options(const std::string& place, int rank, int ranks, double limit_s) {
    const std::size_t colon = place.rfind(':');
    const int port = colon == std::string::npos ? 0 : number(place.substr(colon + 1));
    std::string host = place.substr(0, std::min(colon, place.size()));
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    if (host.empty() || port < 1 || port > 65535)
        throw usage_error("--rendezvous " + place + ": write HOST:PORT, the same for all ranks");
    if (ranks < 1) throw usage_error("--rendezvous needs --ranks N and --rank R");
    if (rank >= ranks)
        throw usage_error("--rank " + std::to_string(rank) + ": the ranks of --ranks " + std::to_string(ranks) +
                          " are 0 to " + std::to_string(ranks - 1));
    return {host, port, rank, ranks, "", limit_s};
}

std::string read_token(const std::string& token_file) {
    std::string token;
    if (!token_file.empty()) {
        std::ifstream file(token_file);
        if (!std::getline(file, token)) throw usage_error("--token-file " + token_file + " cannot be read");
    } else if (const char* variable = std::getenv("FABLINT_TOKEN")) {
        token = variable;
    } else {
        throw usage_error(
            "--rendezvous needs the token of the run: in the variable FABLINT_TOKEN or in a file of --token-file, the "
            "same for all ranks");
    }
    unsetenv("FABLINT_TOKEN");
    check_token(token);
    return token;
}

void check_token(const std::string& token) {
    const bool is_word = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
    if (!is_word || token.size() < shortest_token || token.size() > longest_token)
        throw usage_error("the token must have 16 to 256 letters and digits, such as openssl rand -hex 16 prints");
}

std::string JoinRequest::text() const {
    std::ostringstream line;
    line << greeting << ' ' << token << ' ' << rank << ' ' << ranks << ' ' << host << ' ' << address << '\n';
    return line.str();
}

std::optional<JoinRequest> JoinRequest::parsed(const std::string& line) {
    const bool is_text = std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c < '\x7f'; });
    std::istringstream words(line);
    std::string first, rank, ranks;
    JoinRequest request;
    if (!is_text || !(words >> first >> request.token >> rank >> ranks >> request.host) || first != greeting)
        return std::nullopt;
    std::getline(words >> std::ws, request.address);
    const int own = number(rank), all = number(ranks);
    if (own < 0 || own >= all || request.address.empty()) return std::nullopt;
    request.rank = own;
    request.ranks = all;
    return request;
}

JoinedRanks join_ranks(const RendezvousOptions& options, const std::string& host, const std::string& address) {
    if (options.rank == 0) return RendezvousServer(options, host, address).run();
    return join(options, {options.token, options.rank, options.ranks, host, address});
}

}  // namespace fablint
