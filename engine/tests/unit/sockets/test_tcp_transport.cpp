// TCP sockets of the transport: selected address, admitted callers, and the loss of a peer.
#include <arpa/inet.h>
#include <doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <numeric>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "messaging/transport.hpp"
#include "sockets/tcp_listener.hpp"

using namespace fablint;

namespace {

const std::vector<LocalAddress> loopback = {{"lo", "127.0.0.1", 8}};

std::vector<std::string> interfaces_of(const std::vector<LocalAddress>& addresses) {
    std::vector<std::string> names;
    for (const LocalAddress& local : addresses) names.push_back(local.interface);
    return names;
}

TransportSettings settings_of(int rank, int streams) {
    TransportSettings settings;
    settings.device = "127.0.0.0/8";
    settings.rank = rank;
    settings.streams = streams;
    settings.yielding = true;
    return settings;
}

// Two transports of this process, ranks 0 and 1, connected to each other.
struct Connected {
    explicit Connected(int streams)
        : first(make_tcp_transport(settings_of(0, streams))), second(make_tcp_transport(settings_of(1, streams))) {
        auto accepted = std::async(std::launch::async, [&] { second->connect(0, first->address()); });
        first->connect(1, second->address());
        accepted.get();
    }
    std::unique_ptr<Transport> first, second;
};

Socket plain_connection(int port) {
    Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return socket;
}

}  // namespace

TEST_CASE("the NIC near the rank is used unless a device is given") {
    const std::vector<LocalAddress> all = {{"eth0", "10.0.0.1", 24},
                                           {"hsn0", "10.1.0.1", 16},
                                           {"hsn0", "fd00::1", 64},
                                           {"hsn0", "fe80::1", 64},
                                           {"hsn1", "10.1.0.2", 16}};
    using Names = std::vector<std::string>;
    CHECK(interfaces_of(select_addresses(all, "", {"hsn0"})) == Names{"hsn0", "hsn0"});
    CHECK(interfaces_of(select_addresses(all, "", {})) == Names{"eth0", "hsn0", "hsn0", "hsn1"});
    CHECK(interfaces_of(select_addresses(all, "", {"ib0"})) == Names{"eth0", "hsn0", "hsn0", "hsn1"});
    CHECK(interfaces_of(select_addresses(all, "hsn1", {"hsn0"})) == Names{"hsn1"});
    CHECK(interfaces_of(select_addresses(all, "10.1.0.0/16", {})) == Names{"hsn0", "hsn1"});
    CHECK(interfaces_of(select_addresses(all, "fd00::/64", {})) == Names{"hsn0"});
    CHECK(interfaces_of(select_addresses(all, "10.0.0.0/31", {})) == Names{"eth0"});
    CHECK(interfaces_of(select_addresses({}, "", {})) == Names{"lo"});
    for (const char* device : {"eth9", "10.2.0.0/16", "10.1.0.0/", "10.1.0.0/x", "10.1.0.0/-1", "/16"}) {
        CAPTURE(std::string(device));
        CHECK_THROWS_AS(select_addresses(all, device, {}), Error);
    }
}

TEST_CASE("an interface with a link-local address only is not said to have none") {
    const std::vector<LocalAddress> all = {{"eth0", "10.0.0.1", 24}, {"ib0", "fe80::1", 64}};
    for (const char* device : {"ib0", "fe80::/10"})
        CHECK_THROWS_WITH_AS(select_addresses(all, device, {}), doctest::Contains("link-local addresses of IPv6 only"),
                             Error);
}

TEST_CASE("an address is read as it was written") {
    const TcpListener listener(loopback);
    const TcpAddress address = TcpAddress::parsed(listener.address().text());
    CHECK(address.port == listener.address().port);
    CHECK(address.token == listener.address().token);
    CHECK(address.hosts == std::vector<std::string>{"127.0.0.1"});
}

TEST_CASE("only a caller with the token of the listener is admitted") {
    TcpListener listener(loopback);
    const Socket silent = plain_connection(listener.address().port);
    const Socket stranger = plain_connection(listener.address().port);
    const std::string request(64, 'G');
    REQUIRE(send(stranger.fd(), request.data(), request.size(), MSG_NOSIGNAL) == 64);
    char reply = 0;
    CHECK(recv(stranger.fd(), &reply, 1, 0) <= 0);  // closed

    TcpAddress other = listener.address();
    other.token.back() = other.token.back() == '0' ? '1' : '0';
    CHECK_THROWS_AS(connect_tcp(other, {0, 0}, loopback, false, 5.0), std::runtime_error);

    const Socket own = connect_tcp(listener.address(), {0, 3}, loopback, true, 5.0);
    Socket accepted = listener.take({0, 3}, 5.0);
    CHECK(accepted.is_open());
    CHECK_THROWS_AS(listener.take({0, 4}, 0.05), std::runtime_error);
}

TEST_CASE("a refused connection names the address and the reason") {
    TcpAddress address;
    {
        const TcpListener ended(loopback);
        address = ended.address();
    }
    try {
        connect_tcp(address, {0, 0}, loopback, false, 5.0);
        FAIL_CHECK("connected to a port that nothing listens on");
    } catch (const std::runtime_error& error) {
        CHECK(std::string(error.what()) == "no TCP connection (127.0.0.1: Connection refused)");
    }
}

TEST_CASE("messages arrive in order and intact in both directions, over one stream or several") {
    for (const int streams : {1, 2, 5}) {
        CAPTURE(streams);
        Connected ends(streams);
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{20'000}, std::size_t{3'000'001}}) {
            CAPTURE(bytes);
            constexpr int count = 3;
            std::vector<char> sent(count * bytes + 1), received(count * bytes + 1), returned(count * bytes + 1);
            std::iota(sent.begin(), sent.end() - 1, static_cast<char>(1));
            auto second = std::async(std::launch::async, [&] {
                ends.second->post_receives(0, {received.data(), bytes, count}, bytes);
                ends.second->complete();
                ends.second->post_sends(0, {received.data(), bytes, count}, bytes);
                ends.second->complete();
            });
            ends.first->post_receives(1, {returned.data(), bytes, count}, bytes);
            ends.first->post_sends(1, {sent.data(), bytes, count}, bytes);
            ends.first->complete();
            second.get();
            CHECK(received == sent);
            CHECK(returned == sent);
        }
    }
}

TEST_CASE("a peer that ends is named") {
    Connected ends(2);
    std::vector<char> data(1 << 20);
    ends.second.reset();
    try {
        ends.first->receive(1, data.data(), data.size());
        FAIL_CHECK("received from a rank that has ended");
    } catch (const PeerFailure& failure) {
        CHECK(failure.rank() == 1);
    }
}
