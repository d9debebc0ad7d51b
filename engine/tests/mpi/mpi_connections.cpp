// Collective, see mpi_rank_group.cpp: the exchange of addresses, and one connection for each peer.
#include <doctest.h>

#include <utility>

#include "measure/connections.hpp"
#include "messaging/transport.hpp"
#include "ranks/mpi_control.hpp"

using namespace fablint;

namespace {

// A transport that records its connections.
class RecordingTransport : public Transport {
  public:
    explicit RecordingTransport(std::string address) : address_(std::move(address)) {}
    std::string address() const override { return address_; }
    void connect(int peer, const std::string& address) override { connections.emplace_back(peer, address); }
    void post_sends(int, const Buffers<const char>&, std::size_t) override {}
    void post_receives(int, const Buffers<char>&, std::size_t) override {}
    void complete() override {}

    std::vector<std::pair<int, std::string>> connections;

  private:
    std::string address_;
};

std::string address_of(int rank) {
    return std::string(static_cast<std::size_t>(rank), ' ') + "7 host:" + std::to_string(rank);
}

}  // namespace

TEST_CASE("every rank connects to each peer once, with the address of the peer") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    RecordingTransport transport(address_of(rank_group.rank()));
    Connections connections(rank_group, transport);
    const int first = 0;
    const int last = rank_group.size() - 1;
    connections.connect({first}, 0);
    connections.connect({first, last}, 0);
    connections.connect({last}, 0);
    std::vector<std::pair<int, std::string>> expected = {{first, address_of(first)}};
    if (last != first) expected.emplace_back(last, address_of(last));
    CHECK(transport.connections == expected);
}

TEST_CASE("while a call connects, the watchdog sees that this rank waits for the peer") {
    class Reading : public RecordingTransport {
      public:
        explicit Reading(RankGroup& rank_group) : RecordingTransport("7 host"), heartbeat_(rank_group.heartbeat()) {}
        void connect(int, const std::string&) override { reading = heartbeat_.read(); }
        Heartbeat::Reading reading{};

      private:
        const Heartbeat& heartbeat_;
    };
    constexpr int round = 3;
    RankGroup rank_group(wall_clock(), make_mpi_control());
    Reading transport(rank_group);
    Connections connections(rank_group, transport);
    connections.connect({0}, round);
    CHECK(transport.reading.phase == Heartbeat::Phase::measuring);
    CHECK(transport.reading.peer == 0);
    CHECK(transport.reading.round == round);
    CHECK(rank_group.heartbeat().read().phase == Heartbeat::Phase::busy);
}

TEST_CASE("a transport without addresses is not connected") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    RecordingTransport transport("");
    Connections connections(rank_group, transport);
    connections.connect({0}, 0);
    CHECK(transport.connections.empty());
}

TEST_CASE("a message is sent by posting and completing it unless the transport has a shorter path") {
    class Posting : public RecordingTransport {
      public:
        Posting() : RecordingTransport("") {}
        void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
            log += "send " + std::to_string(peer) + " " + std::to_string(buffers.count * static_cast<int>(bytes)) + ";";
        }
        void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
            log +=
                "receive " + std::to_string(peer) + " " + std::to_string(buffers.count * static_cast<int>(bytes)) + ";";
        }
        void complete() override { log += "complete;"; }
        std::string log;
    };
    Posting transport;
    char byte[5] = {};
    transport.send(3, byte, 5);
    transport.receive(4, byte, 2);
    CHECK(transport.log == "send 3 5;complete;receive 4 2;complete;");
}
