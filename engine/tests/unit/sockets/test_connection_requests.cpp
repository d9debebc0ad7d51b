// TCP connections that this process requests in vain.
#include <arpa/inet.h>
#include <doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "sockets/addresses.hpp"
#include "sockets/connect_limit.hpp"
#include "sockets/connection_requests.hpp"
#include "sockets/socket.hpp"

using namespace fablint;

namespace {

using Sockets = std::vector<UnconnectedSocket>;

// Seconds of requests, of looks at the sockets at intervals of `pause_s`.
double duration_s(const std::vector<Sockets>& looks, double pause_s = 1.0) {
    std::size_t next = 0;
    VainRequests requests([&] { return looks[next++]; }, [] { return 0; });
    for (std::size_t i = 0; i < looks.size(); ++i)
        requests.look(VainRequests::Clock::time_point() +
                      std::chrono::milliseconds(static_cast<int>(1e3 * pause_s * static_cast<double>(i + 1))));
    return requests.duration_s();
}

// A listener on the loopback whose queue is full: the kernel does not answer further requests.
class FullListener {
  public:
    FullListener() : listening_(socket(AF_INET, SOCK_STREAM, 0)) {
        address_ = socket_address("127.0.0.1", 0);
        REQUIRE(bind(listening_.fd(), address_.get(), address_.length) == 0);
        REQUIRE(listen(listening_.fd(), 0) == 0);
        REQUIRE(getsockname(listening_.fd(), address_.get(), &address_.length) == 0);
        first_ = Socket(socket(AF_INET, SOCK_STREAM, 0));
        REQUIRE(connect(first_.fd(), address_.get(), address_.length) == 0);
    }
    const SocketAddress& address() const { return address_; }

  private:
    Socket listening_, first_;
    SocketAddress address_;
};

}  // namespace

TEST_CASE("the table of the kernel names the addresses that have not answered") {
    std::istringstream v4(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   5: 0100007F:C49A 0100007F:E4C1 01 00000000:00000000 02:00007374 00000000     0        0 17366304 2 0 2\n"
        "   6: 0100007F:1AA2 FFFFFFFF:0400 02 00000001:00000000 01:0000156A 00000003     0        0 17366305 2 0 2\n"
        "   7: cut\n");
    CHECK(requested_addresses(v4) == std::map<std::uint64_t, std::string>{{17366305, "255.255.255.255"}});
    std::istringstream v6(
        "   3: 00000000000000000000000000000000:0016 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF:9C40 02 "
        "00000001:00000000 01:00000000 00000000     0        0 8 2 0 2\n");
    CHECK(requested_addresses(v6) ==
          std::map<std::uint64_t, std::string>{{8, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}});
}

TEST_CASE("a request to a host that does not answer is found with its address") {
    const FullListener listener;
    const Socket request = new_socket(AF_INET);
    REQUIRE(connect(request.fd(), listener.address().get(), listener.address().length) != 0);
    const Sockets sockets = unconnected_sockets();
    const auto found = std::find_if(sockets.begin(), sockets.end(), [](const auto& one) { return one.is_requesting; });
    REQUIRE(found != sockets.end());
    CHECK(found->address == "127.0.0.1");
    CHECK(unconnected_sockets("/no/such/folder").empty());
}

TEST_CASE("a request that is refused leaves a socket without a connection") {
    const SocketAddress nowhere = socket_address("127.0.0.1", 1);
    const std::size_t before = unconnected_sockets().size();
    const Socket request = new_socket(AF_INET);
    CHECK(connect(request.fd(), nowhere.get(), nowhere.length) != 0);
    const Sockets sockets = unconnected_sockets();
    CHECK(sockets.size() == before + 1);
    CHECK(std::none_of(sockets.begin(), sockets.end(), [](const auto& one) { return one.is_requesting; }));
}

TEST_CASE("requests last as long as a socket waits, or new sockets are refused again and again") {
    const UnconnectedSocket waiting{1, true, "10.0.0.1"}, idle{2, false, ""};
    CHECK(duration_s({{}, {waiting}, {waiting}, {waiting}}) == 2.0);
    CHECK(duration_s({{idle}, {idle}, {idle}, {idle}}) == 0.0);  // a library keeps it for later
    CHECK(duration_s({{{1, false, ""}}, {{2, false, ""}}, {{3, false, ""}}, {idle, {4, false, ""}}}) == 2.0);
    CHECK(duration_s({{waiting}, {}, {waiting}}) == 2.0);       // repeated at once
    CHECK(duration_s({{waiting}, {}, {waiting}}, 2.0) == 0.0);  // another request, later
}

TEST_CASE("a socket that exists for a part of the time is found if the kernel counts many failed requests") {
    const auto duration_with = [](std::uint64_t failures_per_look) {
        std::uint64_t samples = 0, failed = 0;
        VainRequests requests(
            [&] {
                return ++samples % 4 ? Sockets{} : Sockets{{samples, false, ""}};
            },
            [&] { return failed += failures_per_look; });
        for (int look = 0; look < 4; ++look) requests.look(VainRequests::Clock::time_point(std::chrono::seconds(look)));
        return requests.duration_s();
    };
    CHECK(duration_with(1000) == 2.0);  // the first look only reads the counter
    CHECK(duration_with(10) == 0.0);    // requests of other processes
}

TEST_CASE("the kernel counts requests that are refused") {
    std::istringstream text(
        "Ip: Forwarding AttemptFails2\nIp: 1 7\n"
        "Tcp: RtoAlgorithm AttemptFails EstabResets\nTcp: 1 225274 9\n");
    CHECK(failed_requests(text) == 225274);
    std::istringstream cut("Tcp: RtoAlgorithm AttemptFails\nTcp: 1\n");
    CHECK(failed_requests(cut) == 0);
    const std::uint64_t before = failed_requests();
    const SocketAddress nowhere = socket_address("127.0.0.1", 1);
    const Socket request = new_socket(AF_INET);
    CHECK(connect(request.fd(), nowhere.get(), nowhere.length) != 0);
    CHECK(failed_requests() > before);
}

TEST_CASE("the name of an address is that of the hosts file, and no name server is asked") {
    const auto name_of = [](const std::string& address) {
        std::istringstream text(
            "# 10.0.0.9 comment\n127.0.0.1\tlocalhost\n10.0.0.1   n1-ib0 n1  # a host\n"
            "10.0.0.2\nfd00:0::1 n6\nword n7\n10.0.0.1 second\n");
        return name_in_hosts_file(text, address);
    };
    CHECK(name_of("10.0.0.1") == "n1-ib0");
    CHECK(name_of("fd00::1") == "n6");
    CHECK(name_of("10.0.0.2").empty());
    CHECK(name_of("10.0.0.9").empty());
    CHECK(name_of("10.0.0.3").empty());
    CHECK(name_of("word").empty());
}

TEST_CASE("a request of a connection is reported before the watchdog of the peer reports silence") {
    CHECK(connect_limit_beside(0.0) == connect_limit_s);
    CHECK(connect_limit_beside(60.0) == connect_limit_s);
    for (const double watchdog_s : {2.0, 10.0, 20.0, 24.0}) {
        CHECK(connect_limit_beside(watchdog_s) < watchdog_s);
        CHECK(connect_limit_beside(watchdog_s) >= 0.75 * watchdog_s);
    }
}
