// latency_mt with two ranks in one process, so that a thread sanitizer can watch all threads of both.
#include <doctest.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "kernels/kernel.hpp"
#include "spec/row.hpp"

using namespace fablint;

namespace {

constexpr std::size_t bytes = 300;
constexpr int control_lane = -1;

// Messages between two ranks, in order on each lane. `spoiled`: that payload from the beginning gets a wrong last byte.
class FakeWires {
  public:
    explicit FakeWires(int spoiled) : spoiled_(spoiled) {}

    void send(int to, int lane, const void* data, std::size_t size) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto* begin = static_cast<const unsigned char*>(data);
        std::vector<unsigned char>& message = waiting_[{to, lane}].emplace_back(begin, begin + size);
        if (lane != control_lane && spoiled_-- == 0) message.back() ^= 1U;
        arrived_.notify_all();
    }
    void receive(int at, int lane, void* data, std::size_t size) {
        std::unique_lock<std::mutex> lock(mutex_);
        auto& messages = waiting_[{at, lane}];
        arrived_.wait(lock, [&] { return !messages.empty(); });
        std::memcpy(data, messages.front().data(), size);
        messages.pop_front();
    }
    bool empty() const {
        return std::all_of(waiting_.begin(), waiting_.end(), [](const auto& lane) { return lane.second.empty(); });
    }

  private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::map<std::pair<int, int>, std::deque<std::vector<unsigned char>>> waiting_;
    int spoiled_;
};

// One rank's end of them: lanes only.
class FakeTransport : public Transport, public ThreadLanes {
  public:
    FakeTransport(FakeWires& wires, int rank) : wires_(wires), rank_(rank) {}
    ThreadLanes* thread_lanes() override { return this; }
    void send(int lane, int peer, const void* data, std::size_t size) override { wires_.send(peer, lane, data, size); }
    void receive(int lane, int, void* data, std::size_t size) override { wires_.receive(rank_, lane, data, size); }

    void post_sends(int, const Buffers<const char>&, std::size_t) override {}
    void post_receives(int, const Buffers<char>&, std::size_t) override {}
    void complete() override {}

  private:
    FakeWires& wires_;
    int rank_;
};

// What one rank does in three orders of four samples, as GroupMeasurement; rank 0 leads.
std::vector<Damage> orders(FakeWires& wires, const RowOptions& row, int rank) {
    FakeTransport transport(wires, rank);
    const auto memory = make_memory("host");
    const std::unique_ptr<Kernel> kernel = make_latency_mt(row);
    constexpr auto layout = Payload::Layout::spaced;
    Payload payload(*memory, Payload::half_footprint(bytes, kernel->slots(1, 1, 2), layout), layout);
    payload.set_size(bytes);
    const std::vector<int> peers = {1 - rank};
    const Endpoint end{transport, nullptr, payload, peers, rank, 2, bytes, 1};
    ThreadLanes& lanes = transport;
    const auto gather = [&] {
        char word = 0;
        lanes.send(control_lane, 1 - rank, &word, 1);
        lanes.receive(control_lane, 1 - rank, &word, 1);
    };
    const bool leads = rank == 0;
    std::vector<Damage> damages;
    std::int64_t sample = 0;
    for (const std::int64_t batch : {1, 2, 3}) {
        constexpr std::int64_t batches = 4;
        kernel->arm(end, leads, batch * batches);
        for (std::int64_t i = 0; i < batches; ++i, ++sample) {
            if (row.validate) kernel->fill(end, leads, sample);
            if (row.validate) gather();
            if (leads) kernel->lead(end, batch);
            if (!leads) kernel->follow(end, batch);
            if (row.validate) gather();
            if (row.validate) kernel->check(end, leads, sample, damages);
        }
        kernel->disarm(end, leads);
    }
    return damages;
}

std::vector<Damage> meet(int senders, int receivers, bool validate, int spoiled = -1) {
    RowOptions row;
    row.workers.senders = senders;
    row.workers.receivers = receivers;
    row.validate = validate;
    FakeWires wires(spoiled);
    std::vector<Damage> there;
    std::thread follower([&] { there = orders(wires, row, 1); });
    std::vector<Damage> found = orders(wires, row, 0);
    follower.join();
    CHECK(wires.empty());
    found.insert(found.end(), there.begin(), there.end());
    return found;
}

}  // namespace

TEST_CASE("any number of threads at either end: all messages arrive, each where it belongs") {
    for (int senders = 1; senders <= 4; ++senders)
        for (int receivers = 1; receivers <= 4; ++receivers)
            for (const bool validate : {true, false}) CHECK(meet(senders, receivers, validate).empty());
}

TEST_CASE("a message damaged between threads is named") {
    // Four samples of one round trip, then four of two: the second of a sample is what is found in the slots.
    const std::pair<int, std::int64_t> sample_of_spoiled[] = {{0, 0}, {1, 0}, {6, 3}, {11, 4}};
    for (const auto& [spoiled, sample] : sample_of_spoiled) {
        const std::vector<Damage> damages = meet(1, 3, true, spoiled);
        REQUIRE(damages.size() == 1);
        CHECK(damages[0].src == spoiled % 2);
        CHECK(damages[0].dst == 1 - spoiled % 2);
        CHECK(damages[0].size == bytes);
        CHECK(damages[0].offset == bytes - 1);
        CHECK(damages[0].message == sample);
    }
}
