// The rendezvous and the control messages over sockets; each rank is a thread of this process.
#include <doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <random>
#include <thread>

#include "base/errors.hpp"
#include "ranks/local_ranks.hpp"
#include "ranks/rank_group.hpp"
#include "ranks/rendezvous.hpp"
#include "ranks/socket_control.hpp"
#include "sockets/addresses.hpp"

using namespace fablint;

namespace {

const std::string token = "0123456789abcdef";

int free_port() { return listening_socket("127.0.0.1", 0).second.port(); }

RendezvousOptions options_of(int port, int rank, int ranks, double limit_s = 10.0) {
    return {"127.0.0.1", port, rank, ranks, token, limit_s};
}

// Joins, and returns the message of the error; empty if all ranks joined.
std::string join(const RendezvousOptions& options) {
    try {
        const JoinedRanks joined = join_ranks(options, "host" + std::to_string(options.rank), "1 t 127.0.0.1");
        CHECK(joined.hosts.size() == static_cast<std::size_t>(options.ranks));
        CHECK(joined.hosts.back() == "host" + std::to_string(options.ranks - 1));
        CHECK(joined.addresses.front() == "1 t 127.0.0.1");
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

// A process that knows where to connect and no token.
class Stranger {
  public:
    explicit Stranger(int port) : socket_(new_socket(AF_INET)) {
        const SocketAddress remote = socket_address("127.0.0.1", port);
        while (!connect_socket(socket_, remote, after(1.0)).empty()) socket_ = new_socket(AF_INET);
    }
    void send(const std::string& text) { send_all(socket_, text.data(), text.size(), after(1.0)); }
    // What the rendezvous answers before it closes the connection.
    std::string answer() {
        std::string text(256, '\0');
        std::size_t length = 0;
        while (wait_until(socket_, POLLIN, after(10.0))) {
            const ssize_t got = recv(socket_.fd(), &text[length], text.size() - length, 0);
            if (got <= 0) break;
            length += static_cast<std::size_t>(got);
        }
        return text.substr(0, length);
    }

  private:
    Socket socket_;
};

}  // namespace

TEST_CASE("a connection that has ended says whether the process or the host of its peer has") {
    CHECK(end_of_connection(0) == "its process ended");
    errno = ECONNRESET;
    CHECK(end_of_connection(-1) == "its process ended");
    errno = ETIMEDOUT;
    CHECK(end_of_connection(-1) == "its host does not answer: Connection timed out");
}

TEST_CASE("a rank without the token, a second process of a rank and another number of ranks are refused") {
    const int port = free_port();
    std::thread first([&] { CHECK(join(options_of(port, 0, 3)).empty()); });
    std::thread second([&] { CHECK(join(options_of(port, 1, 3)).empty()); });
    RendezvousOptions other = options_of(port, 2, 3);
    other.token = "fedcba9876543210";
    CHECK(join(other) ==
          "rank 0 at 127.0.0.1:" + std::to_string(port) + " refuses rank 2 (host2): it has another token");
    CHECK(join(options_of(port, 1, 4)).find("--ranks 4, rank 0 with --ranks 3") != std::string::npos);
    CHECK(join(options_of(port, 0, 3)).find("Address already in use") != std::string::npos);
    Stranger twin(port);
    twin.send(JoinRequest{token, 0, 3, "twin", "1 t 127.0.0.1"}.text());
    CHECK(twin.answer() == "refused another process has joined as this rank, on host0\n");
    CHECK(join(options_of(port, 2, 3)).empty());
    first.join();
    second.join();
}

TEST_CASE("ranks join at a link-local address, which is none without its interface") {
    RendezvousOptions first = options_of(free_port(), 0, 2);
    first.host.clear();
    for (const LocalAddress& own : local_addresses())
        if (is_link_local(own.address)) first.host = own.address + "%" + own.interface;
    if (first.host.empty()) {
        MESSAGE("this host has no link-local address of IPv6");
        return;
    }
    RendezvousOptions second = first;
    second.rank = 1;
    std::thread other([&] { CHECK(join(first).empty()); });
    CHECK(join(second).empty());
    other.join();
}

TEST_CASE("strangers at the rendezvous neither join nor keep ranks from joining") {
    const int port = free_port();
    std::thread first([&] { CHECK(join(options_of(port, 0, 2)).empty()); });
    Stranger silent(port);
    std::mt19937 random(1);
    const std::string request = JoinRequest{token, 1, 2, "h", "1 t 127.0.0.1"}.text();
    std::vector<std::string> lines = {std::string(1 << 16, 'x'),
                                      std::string(100, '\0') + "\n",
                                      "\n",
                                      "GET / HTTP/1.1\r\n\r\n",
                                      "fablint-join " + token + " 99999999999999999999 2 h 1 t a\n",
                                      "fablint-join " + token + " -1 2 h 1 t a\n",
                                      "fablint-join " + token + " 1 2\n"};
    for (int i = 0; i < 40; ++i) {
        std::string line = request;
        line[line.find(token) + random() % token.size()] = static_cast<char>('g' + random() % 20);
        line[random() % line.size()] = static_cast<char>(random());
        lines.push_back(line + "\n");
    }
    for (const std::string& line : lines) {
        Stranger stranger(port);
        stranger.send(line);
        const std::string answer = stranger.answer();
        CHECK_MESSAGE((answer.empty() || answer == "refused it has another token\n"), answer);
    }
    CHECK(join(options_of(port, 1, 2)).empty());
    first.join();
}

TEST_CASE("ranks that do not join within the limit are named") {
    const int port = free_port();
    const std::string expected = "ranks 2-3 of 4 did not join at 127.0.0.1:" + std::to_string(port) + " within 0 s";
    std::thread second([&] { CHECK(join(options_of(port, 1, 4, 0.4)) == expected); });
    CHECK(join(options_of(port, 0, 4, 0.4)) == expected);
    second.join();
    const std::string place = "127.0.0.1:" + std::to_string(port);
    CHECK(join(options_of(port, 1, 4, 0.1)) ==
          "rank 1 (host1) found no rank 0 at " + place + " within 0 s (127.0.0.1: Connection refused)");
}

TEST_CASE("a request is read as it was written, and no other line") {
    const JoinRequest request{token, 3, 8, "nid7", "1234 abcd 10.0.0.1 fd00::1"};
    std::string line = request.text();
    line.pop_back();
    const std::optional<JoinRequest> read = JoinRequest::parsed(line);
    REQUIRE(read);
    CHECK(read->text() == request.text());
    for (const std::string bad : {"", "fablint-join", "fablint-join t 8 8 h a", "fablint-join t 1 8 h", "x t 1 8 h a"})
        CHECK_FALSE(JoinRequest::parsed(bad));
}

TEST_CASE("the options of a rendezvous are checked") {
    CHECK(rendezvous_options("[fd00::1]:5000", 1, 2, 1.0).host == "fd00::1");
    for (const std::string place : {"n1", "n1:", ":5000", "n1:0", "n1:70000", "n1:5x"})
        CHECK_THROWS_AS(rendezvous_options(place, 0, 2, 1.0), Error);
    CHECK_THROWS_AS(rendezvous_options("n1:5000", 2, 2, 1.0), Error);
    CHECK_THROWS_AS(check_token("short"), Error);
    CHECK_THROWS_AS(check_token("with blank, long enough"), Error);
    CHECK(parse_ranks("4-6") == std::vector<int>{4, 5, 6});
    setenv("FABLINT_TEST_RANK", "5", 1);
    CHECK(parse_ranks("FABLINT_TEST_RANK") == std::vector<int>{5});
    for (const std::string text : {"", "x", "3-", "3-2", "-1", "123456789"}) CHECK_THROWS_AS(parse_ranks(text), Error);
}

TEST_CASE("a group of ranks is connected by sockets: barriers, texts of any length, control messages") {
    constexpr int ranks = 5;
    const int port = free_port();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([=] {
            RankGroup group(wall_clock(), std::make_unique<SocketControl>(options_of(port, rank, ranks)));
            group.set_yielding(true);
            CHECK(group.hosts().size() == 1);
            CHECK(group.maximum(rank) == ranks - 1);
            CHECK(group.minimum(rank) == 0.0);
            const auto texts = group.gather(std::string(static_cast<std::size_t>(rank) * 100'000, 'x'));
            CHECK(texts.size() == (rank == 0 ? ranks : 0));
            for (std::size_t i = 0; i < texts.size(); ++i) CHECK(texts[i].size() == i * 100'000);
            CHECK(group.broadcast(rank == 0 ? std::string(300'000, 'y') : "").size() == 300'000);
            if (rank == 4) group.send_control_text(2, "hello");
            if (rank == 2) {
                while (!group.has_control_from(4)) {
                }
                CHECK_FALSE(group.has_control_from(3));
                CHECK(group.receive_control_text(4) == "hello");
            }
            group.barrier();
        });
    for (std::thread& thread : threads) thread.join();
}
