// Collective, see mpi_rank_group.cpp: windows, requests, lanes and prepared messages, between ranks 0-1, 2-3, ...; with
// an odd number of ranks the last one is idle.
#include <doctest.h>

#include <array>
#include <cstring>

#include "base/mpi_c.hpp"
#include "messaging/transport.hpp"
#include "ranks/rank_group.hpp"
#include "tests/transport_availability.hpp"

using namespace fablint;

namespace {

constexpr std::size_t line = 64;  // where each operation has its 8 bytes
constexpr std::size_t lines = 8;

struct Rank {
    Rank() {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        peer = rank ^ 1;
        if (peer >= ranks) peer = -1;
    }
    bool leads() const { return rank < peer; }
    int rank = 0, ranks = 0, peer = -1;
};

std::uint64_t read(const void* at) {
    std::uint64_t number = 0;
    std::memcpy(&number, at, sizeof number);
    return number;
}

// What the window of a rank holds in that line at first: all bytes equal, so small that sums do not overflow.
std::uint64_t first_content(int rank, std::size_t at) {
    std::uint64_t number = 0;
    std::memset(&number, 1 + 8 * (rank % 2) + static_cast<int>(at), sizeof number);
    return number;
}

// A window whose lines hold their first content, visible to all.
class TestWindow {
  public:
    TestWindow(Transport& transport, const Rank& me, const WindowRequest& request)
        : memory_(make_memory("host")), window(transport.rma()->expose(*memory_, request)) {
        for (std::size_t at = 0; at < lines; ++at) {
            const std::uint64_t number = first_content(me.rank, at);
            std::memcpy(here(at), &number, sizeof number);
        }
        window->settle();
        transport.collectives()->barrier();
    }
    unsigned char* here(std::size_t at) const { return static_cast<unsigned char*>(window->base()) + at * line; }

  private:
    std::unique_ptr<Memory> memory_;  // longer than the window

  public:
    std::unique_ptr<Window> window;
};

// A window of one message.
Buffers<const char> single(const std::uint64_t& number) { return {reinterpret_cast<const char*>(&number), 0, 1}; }
Buffers<char> single(std::uint64_t& number) { return {reinterpret_cast<char*>(&number), 0, 1}; }

// Both ends take part in one access of the lower rank.
template <typename Operations>
void access(Transport& transport, const Rank& me, Window& window, Operations operations) {
    transport.collectives()->barrier();
    if (me.peer >= 0) {
        window.epochs().hold(me.peer);
        if (me.leads()) {
            window.epochs().open(me.peer);
            operations(window);
            window.complete(me.peer);
            window.flush(me.peer);
        } else {
            window.epochs().expose(me.peer);
            window.epochs().unexpose(me.peer);
        }
    }
    transport.collectives()->barrier();
    window.settle();
    if (me.peer >= 0) window.epochs().release(me.peer);
    transport.collectives()->barrier();
}

// A single rank has no peer, and Open MPI creates no window for it.
template <typename Work>
void with_every_window(const Rank& me, Work work) {
    if (me.ranks == 1) return;
    for (const WinInfo& win : wins()) {
        for (const SyncInfo& sync : syncs()) {
            if (sync.name == std::string("fence") && me.ranks != 2) continue;
            CAPTURE(std::string(win.name));
            CAPTURE(std::string(sync.name));
            work(WindowRequest{lines * line, win.name, sync.name});
        }
    }
}

// One operation of seven of each kind is damaged.
void check_damaged_operations(int turns) {
    const Rank me;
    if (me.ranks == 1) return;
    const auto transport = make_corrupt_transport({});
    const TestWindow window(*transport, me, {lines * line, "create", "flush"});
    const std::uint64_t zero = 0;
    std::array<int, lines> damaged{};
    for (int turn = 0; turn < turns; ++turn) {
        std::uint64_t got = 0, ignored = 0;
        const auto begin = [&](Window& there, std::size_t at) {
            if (at == 0) there.put(me.peer, 0 * line, single(zero), sizeof zero);
            if (at == 1) there.get(me.peer, 1 * line, single(got), sizeof got);
            if (at == 2) there.accumulation()->accumulate(me.peer, 2 * line, &zero, sizeof zero);
            if (at == 3) there.accumulation()->get_accumulate(me.peer, 3 * line, &zero, &ignored, sizeof zero);
            if (at == 4) there.atomics()->fetch_and_add(me.peer, 4 * line, &zero, &ignored);
        };
        for (std::size_t at = 0; at < 5; ++at) {
            const std::uint64_t before = at == 0 ? 0 : read(window.here(at));
            access(*transport, me, *window.window, [&](Window& there) { begin(there, at); });
            const bool target = me.peer >= 0 && !me.leads();
            if (target && at != 1 && read(window.here(at)) != before) ++damaged[at];
            if (me.leads() && at == 1 && got != first_content(me.peer, 1)) ++damaged[at];
        }
    }
    const bool target = me.peer >= 0 && !me.leads();
    for (std::size_t at = 0; at < 5; ++at) CHECK(damaged[at] == ((at == 1 ? me.leads() : target) ? turns / 7 : 0));
}

}  // namespace

TEST_CASE("every operation changes its own line, in every window and synchronisation") {
    const Rank me;
    const auto transport = make_mpi_transport({});
    with_every_window(me, [&](const WindowRequest& request) {
        const TestWindow window(*transport, me, request);
        const std::uint64_t mine = 0x0102030405060708, wrong = 0;
        const std::uint64_t at_peer_4 = first_content(me.peer, 4);
        std::uint64_t got = 0, found = 0, added = 0, swapped = 0, kept = 0;
        const bool swaps = request.win != "allocate";  // crashes Open MPI 4, see mpi_window.cpp
        access(*transport, me, *window.window, [&](Window& there) {
            there.put(me.peer, 0 * line, single(mine), sizeof mine);
            there.get(me.peer, 1 * line, single(got), sizeof got);
            there.accumulation()->accumulate(me.peer, 2 * line, &mine, sizeof mine);
            there.accumulation()->get_accumulate(me.peer, 3 * line, &mine, &found, sizeof found);
            if (swaps) there.atomics()->compare_and_swap(me.peer, 4 * line, &mine, &at_peer_4, &swapped);
            if (swaps) there.atomics()->compare_and_swap(me.peer, 5 * line, &mine, &wrong, &kept);
            there.atomics()->fetch_and_add(me.peer, 6 * line, &mine, &added);
        });
        const bool target = me.peer >= 0 && !me.leads();
        const auto before = [&](std::size_t at) { return first_content(me.rank, at); };
        CHECK(read(window.here(0)) == (target ? mine : before(0)));
        CHECK(read(window.here(1)) == before(1));
        CHECK(read(window.here(2)) == before(2) + (target ? mine : 0));
        CHECK(read(window.here(3)) == before(3) + (target ? mine : 0));
        CHECK(read(window.here(4)) == (target && swaps ? mine : before(4)));
        CHECK(read(window.here(5)) == before(5));
        CHECK(read(window.here(6)) == before(6) + (target ? mine : 0));
        CHECK(read(window.here(7)) == before(7));
        if (!me.leads()) return;
        CHECK(got == first_content(me.peer, 1));
        CHECK(found == first_content(me.peer, 3));
        CHECK(swapped == (swaps ? at_peer_4 : 0));
        CHECK(kept == (swaps ? first_content(me.peer, 5) : 0));
        CHECK(added == first_content(me.peer, 6));
    });
}

TEST_CASE("the messages of a window are as far apart at the target as here") {
    const Rank me;
    const auto transport = make_mpi_transport({});
    constexpr std::size_t each = 3;
    with_every_window(me, [&](const WindowRequest& request) {
        const TestWindow window(*transport, me, request);
        constexpr std::size_t words = line / sizeof(std::uint64_t);
        const std::array<std::uint64_t, each* words> mine = {11, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 13};
        std::array<std::uint64_t, each * words> got{};
        access(*transport, me, *window.window, [&](Window& there) {
            there.put(me.peer, 1 * line, {reinterpret_cast<const char*>(mine.data()), line, each}, sizeof mine[0]);
            there.get(me.peer, 5 * line, {reinterpret_cast<char*>(got.data()), line, each}, sizeof got[0]);
        });
        const bool target = me.peer >= 0 && !me.leads();
        for (std::size_t at = 0; at < lines; ++at) {
            const bool put = target && at >= 1 && at < 1 + each;
            CHECK(read(window.here(at)) == (put ? 10 + at : first_content(me.rank, at)));
        }
        for (std::size_t at = 0; at < each * words; ++at)
            CHECK(got[at] == (me.leads() && at % words == 0 ? first_content(me.peer, 5 + at / words) : 0));
    });
}

TEST_CASE("both ends of a pair put into each other's window at once") {
    const Rank me;
    if (me.ranks == 1) return;
    const auto transport = make_mpi_transport({});
    for (const SyncInfo& sync : syncs()) {
        if (!sync.both_ends || (sync.name == std::string("fence") && me.ranks != 2)) continue;
        CAPTURE(std::string(sync.name));
        const TestWindow window(*transport, me, {lines * line, "allocate", sync.name});
        const auto mine = static_cast<std::uint64_t>(1000 + me.rank);
        if (me.peer >= 0) {
            Window& there = *window.window;
            there.epochs().hold(me.peer);
            there.epochs().expose(me.peer);
            there.epochs().open(me.peer);
            there.put(me.peer, 0, single(mine), sizeof mine);
            there.complete(me.peer);
            there.epochs().unexpose(me.peer);
            there.epochs().release(me.peer);
            CHECK(read(window.here(0)) == static_cast<std::uint64_t>(1000 + me.peer));
        }
        transport->collectives()->barrier();
    }
}

TEST_CASE("a damaged operation is one of seven, whatever it is") { check_damaged_operations(7); }

TEST_CASE("two damaged operations are seven apart" * doctest::test_suite("long")) { check_damaged_operations(14); }

TEST_CASE("requests arrive from any sender, in order for each sender, next to other messages") {
    const Rank me;
    const auto transport = make_mpi_transport({});
    constexpr int each = 5;
    if (me.rank > 0) {
        for (int what = 0; what < each; ++what) transport->request_queue()->request(0, 100 * me.rank + what);
        transport->send(0, &me.rank, sizeof me.rank);
        return;
    }
    std::vector<int> seen(static_cast<std::size_t>(me.ranks), 0);
    for (int left = each * (me.ranks - 1); left > 0; --left) {
        int what = -1;
        const int sender = transport->request_queue()->next_request(what);
        CHECK(what == 100 * sender + seen[static_cast<std::size_t>(sender)]++);
    }
    CHECK_FALSE(transport->request_queue()->has_request());
    for (int rank = me.ranks - 1; rank > 0; --rank) {
        int said = -1;
        transport->receive(rank, &said, sizeof said);
        CHECK(said == rank);
    }
}

TEST_CASE("a request that has arrived is visible before it is taken") {
    const Rank me;
    const auto transport = make_mpi_transport({});
    if (me.peer < 0) return;
    if (me.leads()) {
        transport->request_queue()->request(me.peer, 17);
        return;
    }
    while (!transport->request_queue()->has_request()) {
    }
    int what = 0;
    CHECK(transport->request_queue()->next_request(what) == me.peer);
    CHECK(what == 17);
}

TEST_CASE("messages on one lane do not overtake those on another in its place") {
    const Rank me;
    const auto transport = make_mpi_transport({});
    if (me.peer < 0) return;
    constexpr int last_lane = 128 * 128 - 1;  // of the most workers that latency_mt takes
    for (const int lane : {0, 1, last_lane})
        if (me.leads()) transport->thread_lanes()->send(lane, me.peer, &lane, sizeof lane);
    for (const int lane : {last_lane, 0, 1}) {
        int said = -1;
        if (!me.leads()) transport->thread_lanes()->receive(lane, me.peer, &said, sizeof said);
        CHECK(said == (me.leads() ? -1 : lane));
    }
}

TEST_CASE("prepared messages carry what is in their buffers each time, and can be prepared anew") {
    const Rank me;
    const auto transport = make_mpi_transport({});
    if (me.peer < 0) return;
    for (int order = 0; order < 2; ++order) {
        std::array<int, 2> sent{}, received{};
        const auto messages = transport->persistent()->prepare();
        for (int& slot : received) messages->add_receive(me.peer, &slot, sizeof slot);
        for (const int& slot : sent) messages->add_send(me.peer, &slot, sizeof slot);
        for (int turn = 0; turn < 3; ++turn) {
            sent = {100 * me.rank + turn, 100 * me.rank + 10 + turn};
            messages->start();
            messages->complete();
            CHECK(received == std::array<int, 2>{100 * me.peer + turn, 100 * me.peer + 10 + turn});
        }
    }
}

TEST_CASE("collectives reach every rank") {
    const Rank me;
    const auto transport = make_mpi_transport({});
    const auto ranks = static_cast<std::size_t>(me.ranks);
    int word = me.rank == 0 ? 42 : 0;
    transport->collectives()->broadcast(0, me.rank == 0 ? &word : nullptr, &word, sizeof word);
    CHECK(word == 42);
    const std::array<float, 2> mine = {static_cast<float>(me.rank), 1.0F};
    std::array<float, 2> total{};
    transport->collectives()->sum(mine.data(), total.data(), mine.size());
    CHECK(total[0] == static_cast<float>(me.ranks * (me.ranks - 1) / 2));
    CHECK(total[1] == static_cast<float>(me.ranks));
    std::vector<float> parts(ranks, static_cast<float>(me.rank));
    float own = 0.0F;
    CHECK(transport->collectives()->reduce_scatter(parts.data(), &own, 1) == &own);
    CHECK(own == total[0]);
    std::vector<int> out(ranks), in(ranks);
    transport->collectives()->all_gather(&me.rank, in.data(), sizeof me.rank);
    for (int rank = 0; rank < me.ranks; ++rank) {
        CHECK(in[static_cast<std::size_t>(rank)] == rank);
        out[static_cast<std::size_t>(rank)] = 100 * me.rank + rank;
    }
    transport->collectives()->all_to_all(out.data(), in.data(), sizeof(int));
    for (int rank = 0; rank < me.ranks; ++rank) CHECK(in[static_cast<std::size_t>(rank)] == 100 * rank + me.rank);
}

TEST_CASE("atomics of a libfabric provider that crashes in them are refused") {
    TransportSettings settings;
    settings.provider = "udp";
    settings.required = capability::rma | capability::atomics;
    std::unique_ptr<Transport> transport;
    if (const auto absent = attempt([&] { transport = make_ofi_transport(settings); })) {
        MESSAGE("skipped: provider udp: " << std::string(absent->what()));
        return;
    }
    const auto memory = make_memory("host");
    const auto error = attempt([&] { transport->rma()->expose(*memory, {64, "create", "flush"}); });
    REQUIRE(error);
    CHECK(std::string(error->what()).find("ofi_rxd of libfabric crashes in atomics") != std::string::npos);
}

TEST_CASE("every transport offers the capabilities of its row in the table, and no others") {
    for (const TransportInfo& info : transports()) {
        CAPTURE(std::string(info.name));
        if (!is_available(info)) continue;
        const auto transport = info.make({});
        const auto offers = [&](Capabilities one) { return (info.offers & one) != 0; };
        CHECK((transport->persistent() != nullptr) == offers(capability::persistent));
        CHECK((transport->thread_lanes() != nullptr) == offers(capability::thread_lanes));
        CHECK((transport->rma() != nullptr) == offers(capability::rma));
        CHECK((transport->request_queue() != nullptr) == offers(capability::request_queue));
        CHECK((transport->collectives() != nullptr) == offers(capability::collectives));
        CHECK((transport->mpi_collectives() != nullptr) == offers(capability::mpi_collectives));
    }
}
