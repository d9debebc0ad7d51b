// TCP counters of the kernel, and their conversion to the row attribute.
#include <arpa/inet.h>
#include <doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "host/retransmissions.hpp"
#include "sockets/tcp_connections.hpp"

using namespace fablint;

namespace {

// A struct tcp_info by the offsets of include/uapi/linux/tcp.h.
using Info = std::array<unsigned char, 248>;

void set(Info& info, std::size_t offset, std::uint32_t value) { std::memcpy(&info[offset], &value, sizeof value); }

Info busy() {
    Info info{};
    set(info, 100, 7);    // tcpi_total_retrans
    set(info, 152, 300);  // tcpi_data_segs_in
    set(info, 156, 400);  // tcpi_data_segs_out
    set(info, 216, 3);    // tcpi_dsack_dups
    return info;
}

TcpConnection connection(std::uint64_t socket, const std::string& peer, std::uint32_t sent, std::uint32_t retransmitted,
                         std::uint32_t spurious = 0) {
    return {socket, "10.0.0.1", peer, TcpCounts{sent, retransmitted, spurious, sent, true}};
}

// A connection over the loopback, both ends of which are this process.
class Loopback {
  public:
    Loopback() {
        const int listener = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        REQUIRE(bind(listener, generic, length) == 0);
        REQUIRE(listen(listener, 1) == 0);
        REQUIRE(getsockname(listener, generic, &length) == 0);
        client_ = socket(AF_INET, SOCK_STREAM, 0);
        REQUIRE(connect(client_, generic, length) == 0);
        server_ = accept(listener, nullptr, nullptr);
        REQUIRE(server_ >= 0);
        close(listener);
    }
    ~Loopback() {
        close(client_);
        close(server_);
    }
    Loopback(const Loopback&) = delete;
    Loopback& operator=(const Loopback&) = delete;

    void send(int times) const {
        for (int time = 0; time < times; ++time) {
            char byte = 'x';
            REQUIRE(write(client_, &byte, 1) == 1);
            REQUIRE(read(server_, &byte, 1) == 1);
        }
    }

  private:
    int client_ = -1, server_ = -1;
};

std::vector<TcpConnection> on_loopback() {
    std::vector<TcpConnection> found = tcp_connections();
    found.erase(std::remove_if(found.begin(), found.end(), [](const auto& one) { return one.peer != "127.0.0.1"; }),
                found.end());
    return found;
}

const std::vector<LocalAddress> own = {{"hsn0", "10.0.0.1"}, {"eth0", "192.168.0.1"}};

}  // namespace

TEST_CASE("counters are read as far as the kernel has them") {
    const Info info = busy();
    CHECK(!tcp_counts(info.data(), 104));  // Linux 3.10
    CHECK(!tcp_counts(info.data(), 159));
    const auto some = tcp_counts(info.data(), 160);  // Linux 4.6
    REQUIRE(some);
    CHECK(some->sent == 400);
    CHECK(some->retransmitted == 7);
    CHECK(some->received == 300);
    CHECK(!some->knows_spurious);
    CHECK(some->spurious == 0);
    const auto all = tcp_counts(info.data(), info.size());
    REQUIRE(all);
    CHECK(all->knows_spurious);
    CHECK(all->spurious == 3);
}

TEST_CASE("the connections of this process are found, with their segments") {
    const std::size_t others = on_loopback().size();
    const Loopback loopback;
    loopback.send(5);
    const auto before = on_loopback();
    REQUIRE(before.size() == others + 2);
    loopback.send(20);
    std::int64_t sent = 0, received = 0;
    for (const auto& [path, traffic] : tcp_traffic(before, on_loopback())) {
        CHECK(path.first == "127.0.0.1");
        sent += traffic.sent;
        received += traffic.received;
        CHECK(traffic.retransmitted == 0);
    }
    CHECK(sent == 20);
    CHECK(received == 20);
}

TEST_CASE("descriptors that are not connections are left out") {
    const std::size_t before = tcp_connections().size();
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    const int unconnected = socket(AF_INET, SOCK_STREAM, 0), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    int local[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, local) == 0);
    CHECK(tcp_connections().size() == before);
    for (const int descriptor : {pipe_ends[0], pipe_ends[1], unconnected, datagrams, local[0], local[1]})
        close(descriptor);
    CHECK(tcp_connections("/no/such/folder").empty());
}

TEST_CASE("only what was counted in between counts") {
    const auto traffic = tcp_traffic(
        {connection(1, "10.0.0.2", 100, 5), connection(2, "10.0.0.3", 50, 1),
         connection(3, "10.0.0.4", 0xfffffff0, 0xffffffff)},
        {connection(1, "10.0.0.2", 130, 9, 2), connection(4, "10.0.0.2", 10, 1), connection(3, "10.0.0.4", 0x10, 1)});
    REQUIRE(traffic.size() == 2);  // 10.0.0.3 was closed
    const TcpTraffic& grown = traffic.at({"10.0.0.1", "10.0.0.2"});
    CHECK(grown.sent == 40);  // of two connections, one of which is new
    CHECK(grown.retransmitted == 5);
    CHECK(grown.spurious == 2);
    const TcpTraffic& wrapped = traffic.at({"10.0.0.1", "10.0.0.4"});
    CHECK(wrapped.sent == 32);
    CHECK(wrapped.retransmitted == 2);
}

TEST_CASE("a socket that has the number of one that was closed counts from its beginning") {
    const auto traffic = tcp_traffic({connection(1, "10.0.0.2", 100, 5)}, {connection(1, "10.0.0.3", 20, 1)});
    CHECK(traffic.at({"10.0.0.1", "10.0.0.3"}).sent == 20);
}

TEST_CASE("what a rank reports is between hosts, and lost") {
    const std::string text =
        tcp_report(tcp_traffic({}, {connection(1, "10.0.0.2", 100, 5, 5), connection(2, "10.0.0.3", 50, 4, 1),
                                    connection(3, "10.0.0.1", 70, 6), connection(4, "10.0.0.4", 0, 0)}),
                   own);
    CHECK(text == "end 10.0.0.1 150 150 0 1\npath 10.0.0.1 10.0.0.3 50 4 1\n");
    CHECK(tcp_report(tcp_traffic({}, {connection(4, "10.0.0.4", 0, 0)}), own).empty());
}

TEST_CASE("of many peers those with the most losses are reported, and the others are counted") {
    std::vector<TcpConnection> connections;
    for (std::uint32_t peer = 0; peer < 100; ++peer)
        connections.push_back(connection(peer, "10.1.0." + std::to_string(peer), 1000, peer + 1));
    const std::string text = tcp_report(tcp_traffic({}, connections), own);
    CHECK(std::count(text.begin(), text.end(), '\n') == 1 + 64);
    CHECK(text.rfind("end 10.0.0.1 100000 100000 36 1\npath 10.0.0.1 10.1.0.99 1000 100 0\n", 0) == 0);
}

TEST_CASE("addresses become hosts and interfaces, and ranks of a host are added up") {
    const std::vector<std::string> hosts = {"n1", "n2"};
    const std::vector<std::string> addresses = {"hsn0 10.0.0.1\ndocker0 172.17.0.1\n",
                                                "hsn0 10.0.0.2\ndocker0 172.17.0.1\n"};
    const std::vector<std::string> reports = {
        "end 10.0.0.1 100 90 1 1\nend 172.17.0.1 9 9 0 1\npath 10.0.0.1 10.0.0.2 80 4 1\npath 10.0.0.1 10.9.9.9 5 1 "
        "0\n",
        "end 10.0.0.1 20 20 2 1\npath 10.0.0.1 10.0.0.2 20 2 0\n", "end 10.0.0.2 110 115 0 1\n"};
    const auto segments = tcp_segments(hosts, addresses, reports);
    REQUIRE(segments);
    CHECK(segments->ends == std::vector<std::string>{"n1/hsn0", "n2/hsn0"});
    CHECK(segments->sent == std::vector<std::int64_t>{120, 110});
    CHECK(segments->received == std::vector<std::int64_t>{110, 115});
    CHECK(segments->pairs == std::vector<std::int64_t>{0, 1, 100, 6, 1});
    CHECK(segments->omitted == 3);
    CHECK(segments->knows_spurious);
}

TEST_CASE("one kernel that does not know what had arrived already is enough") {
    const auto segments = tcp_segments({"n1", "n2"}, {"hsn0 10.0.0.1\n", "hsn0 10.0.0.2\n"},
                                       {"end 10.0.0.1 1 1 0 1\n", "end 10.0.0.2 1 1 0 0\n"});
    REQUIRE(segments);
    CHECK(!segments->knows_spurious);
}

TEST_CASE("without traffic between hosts there is nothing") {
    CHECK(!tcp_segments({"n1", "n2"}, {"hsn0 10.0.0.1\n", "hsn0 10.0.0.2\n"}, {}));
}

TEST_CASE("the addresses of this host are numeric and not the loopback's") {
    for (const LocalAddress& one : local_addresses()) {
        CHECK(!one.interface.empty());
        CHECK(one.address.rfind("127.", 0) != 0);
        CHECK(one.address != "::1");
    }
}
