// Collective: all ranks run every case, with CHECK only, since a rank that leaves early would leave the others waiting.
#include <doctest.h>

#include <algorithm>

#include "measure/instrument.hpp"
#include "ranks/mpi_control.hpp"
#include "ranks/rank_group.hpp"

using namespace fablint;

TEST_CASE("a barrier returns the union of the flags and the maximum on all ranks") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const bool yielding : {false, true}) {
        rank_group.set_yielding(yielding);
        for (int speaker = 0; speaker < rank_group.size(); ++speaker) {
            Signal mine;
            mine.largest = rank_group.rank();
            if (rank_group.rank() == speaker) mine.flags = Signal::stop;
            if (rank_group.rank() == 0) mine.flags |= Signal::flush;
            const Signal all = rank_group.barrier(mine);
            CHECK(all.flags == (Signal::stop | Signal::flush));
            CHECK(all.largest == rank_group.size() - 1);
        }
        CHECK(rank_group.barrier().flags == 0);
    }
}

TEST_CASE("no rank leaves a barrier before all ranks have entered it") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    rank_group.set_yielding(true);
    for (int late = 0; late < rank_group.size(); ++late) {
        rank_group.barrier();
        const double begin = rank_group.now();
        if (rank_group.rank() == late)
            while (rank_group.now() < begin + 0.01) {
            }
        const double came = rank_group.now();
        rank_group.barrier();
        const double left = rank_group.now();
        const double first_left = rank_group.minimum(left);
        const double last_came = rank_group.maximum(came);
        CHECK(first_left >= last_came - 2.0 * rank_group.clock_uncertainty());
    }
}

TEST_CASE("texts are gathered and broadcast, of any length") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    CHECK(rank_group.broadcast(rank_group.rank() == 0 ? "hello" : "").compare("hello") == 0);
    CHECK(rank_group.broadcast("").empty());
    const auto all = rank_group.gather(std::string(static_cast<std::size_t>(rank_group.rank()), 'x'));
    CHECK(all.size() == (rank_group.rank() == 0 ? static_cast<std::size_t>(rank_group.size()) : 0));
    for (std::size_t rank = 0; rank < all.size(); ++rank) CHECK(all[rank].size() == rank);
}

TEST_CASE("equal texts are gathered once") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const auto texts = rank_group.gather(rank_group.rank() % 2 == 0 ? "even" : std::string(100, 'o'));
    if (rank_group.rank() != 0) CHECK(texts.empty());
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
        CHECK(texts[rank] == (rank % 2 == 0 ? "even" : std::string(100, 'o')));
        CHECK(texts.codes()[rank] == static_cast<std::int32_t>(rank % 2));
    }
    if (!texts.empty()) CHECK(texts.values().size() == std::min<std::size_t>(2, texts.size()));
}

TEST_CASE("numbers are gathered in the order of the ranks") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const std::vector<float> numbers = rank_group.gather_numbers(0.5F * static_cast<float>(rank_group.rank()));
    CHECK(numbers.size() == (rank_group.rank() == 0 ? static_cast<std::size_t>(rank_group.size()) : 0));
    for (std::size_t rank = 0; rank < numbers.size(); ++rank) CHECK(numbers[rank] == 0.5F * static_cast<float>(rank));
}

TEST_CASE("each rank gets its own bytes of a text") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const std::size_t bytes : {0, 1, 3, 100'000}) {
        std::string all;
        if (rank_group.rank() == 0)
            for (int rank = 0; rank < rank_group.size(); ++rank) all.append(bytes, static_cast<char>('a' + rank));
        const char own = static_cast<char>('a' + rank_group.rank());
        CHECK(rank_group.scatter(all, bytes) == std::string(bytes, own));
    }
}

TEST_CASE("an error of one rank becomes the error of all") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    CHECK_NOTHROW(rank_group.throw_if_any_failed(std::nullopt));
    std::optional<Error> mine;
    if (rank_group.rank() == rank_group.size() - 1) mine = incomplete_error("(expected in the log of this test)");
    Exit status = Exit::done;
    try {
        rank_group.throw_if_any_failed(mine);
    } catch (const Error& error) {
        status = error.status();
    }
    CHECK(status == Exit::incomplete);
}

TEST_CASE("hosts are listed once, and every rank knows the first rank of its host") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    CHECK(rank_group.hosts().size() >= 1);
    CHECK(rank_group.rank_host().size() == static_cast<std::size_t>(rank_group.size()));
    CHECK(rank_group.rank_host()[0] == 0);
    CHECK(rank_group.host_of(rank_group.first_rank_on_my_host()) == rank_group.host_of(rank_group.rank()));
    CHECK(rank_group.first_rank_on_my_host() <= rank_group.rank());
}

TEST_CASE("the instrument measures itself") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    rank_group.set_yielding(true);
    const Instrument instrument = examine_instrument(rank_group, wall_clock());
    CHECK(instrument.clock.resolution_s > 0.0);
    CHECK(instrument.clock.resolution_s < 1e-3);
    CHECK(instrument.clock.overhead_s > 0.0);
    CHECK(instrument.empty_kernel_s >= 0.0);
    CHECK(instrument.barrier_skew_s >= 0.0);
}
