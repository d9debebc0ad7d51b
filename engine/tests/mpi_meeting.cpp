// Collective, see mpi_team.cpp: each case measures rows with all ranks. One rank alone has nobody to meet.
#include <doctest.h>

#include <sys/wait.h>

#include <cerrno>
#include <cmath>

#include "base/mpi_c.hpp"
#include "base/table.hpp"
#include "measure/meeting.hpp"

using namespace fablint;

namespace {

int barriers = 0;

// Every reading is a microsecond after the last.
class CountingClock : public Clock {
  public:
    const char* name() const override { return "counting"; }
    double now() const override { return 1e-6 * static_cast<double>(++readings_); }

  private:
    mutable std::int64_t readings_ = 0;
};

RowOptions row_of(const std::string& line) { return parse_plan(line, "test").at(0); }

struct Met {
    Cell cell;
    std::vector<Damage> damages;
    Seat seat;
};

// Rank 0 has all others as its leaves.
Seat star_seat(const Team& team) {
    Seat seat{team.rank() == 0 ? Seat::Role::hub : Seat::Role::leaf, {}, 0, 0};
    if (team.rank() > 0) seat.peers = {0};
    for (int rank = 1; rank < team.size() && team.rank() == 0; ++rank) seat.peers.push_back(rank);
    return seat;
}

// Pairs meet as 0-1, 2-3, ...; with an odd number of ranks the last looks on.
Seat pair_seat(const Team& team) {
    const int partner = team.rank() ^ 1;
    return partner < team.size() ? Seat{Seat::Role::pair, {partner}, team.rank() / 2, -1} : Seat{};
}

Seat seat_of(const Team& team, const RowOptions& row) {
    if (row.pattern_info().stars()) return star_seat(team);
    if (row.pattern_info().pairs()) return pair_seat(team);
    return {Seat::Role::world, {}, 0, 0};
}

Met meet(Team& team, const RowOptions& row, const Clock& clock = wall_clock()) {
    if (team.size() == 1) return {};
    team.set_patient(true);
    const auto transport = transport_named(row.transport).make();
    const auto memory = memory_named(row.memory).make();
    Met met;
    met.seat = seat_of(team, row);
    Meeting::Crowd crowd;
    crowd.fan = row.pattern_info().stars() ? team.size() - 1 : 1;
    crowd.own_fan = std::max(1, static_cast<int>(met.seat.peers.size()));
    crowd.hub_leads = row.pattern == "fan-out";
    Meeting meeting(team, clock, 25e-9, row, *transport, *memory, crowd);
    if (!met.seat.idle()) met.cell = meeting.meet(met.seat, team.rank() < met.seat.partner(), 0);
    met.damages = meeting.damages();
    team.rendezvous();
    return met;
}

bool threads_allowed() {
    int provided = 0;
    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE;
}

bool runs_here(const KernelInfo& kernel) { return std::string(kernel.name) != "latency_mt" || threads_allowed(); }

std::string sizes_of(const KernelInfo& kernel) {
    switch (kernel.sizes) {
        case Sizes::from_0:
            return "0,1,100000";
        case Sizes::from_1:
            return "1,100000";
        case Sizes::floats:
            return "4,100000";
        case Sizes::only_0:
        case Sizes::only_8:
            break;
    }
    return kernel.default_sizes;
}

// The row of a kernel with few messages per window: sanitizers look at every byte.
std::string short_line(const KernelInfo& kernel) {
    return std::string(kernel.name) + (kernel.windowed() ? " --window 5" : "");
}

// The row of a kernel with its default window.
std::string own_line(const KernelInfo& kernel) { return kernel.name; }

using LineOf = std::string (*)(const KernelInfo&);

void check_sizes(const Cell& cell, const RowOptions& row, std::uint32_t samples) {
    CHECK(cell.sizes.size() == row.sizes.size());
    for (const SizeResult& size : cell.sizes) {
        CHECK(size.count == samples);
        CHECK(size.min > 0.0F);
        CHECK(size.min <= size.median);
        CHECK(size.median <= size.p99);
        CHECK(size.p99 <= size.max);
        CHECK(size.mean <= size.max);
    }
}

// Who sends what a rank receives is its peer, or a rank of the world; -1 where all had a part in it.
void check_names(const Team& team, const Met& met) {
    for (const Damage& damage : met.damages) {
        CHECK(damage.dst == team.rank());
        CHECK(damage.offset < damage.size);
        const bool peer = std::count(met.seat.peers.begin(), met.seat.peers.end(), damage.src) == 1;
        const bool world = met.seat.role == Seat::Role::world && damage.src >= -1 && damage.src < team.size();
        CHECK((peer || world));
    }
}

void check_kernels(LineOf line_of) {
    Team team(wall_clock());
    for (const KernelInfo& kernel : kernels()) {
        if (!runs_here(kernel)) continue;
        CAPTURE(std::string(kernel.name));
        const RowOptions row =
            row_of(line_of(kernel) + " --validate --samples 3 --warmup 2 --sizes " + sizes_of(kernel));
        const Met met = meet(team, row);
        CHECK(met.damages.empty());
        if (!met.seat.idle()) check_sizes(met.cell, row, 3);
    }
}

void check_kernels_find_damage(LineOf line_of) {
    Team team(wall_clock());
    for (const KernelInfo& kernel : kernels()) {
        if (!runs_here(kernel) || kernel.payload == Sender::none) continue;
        CAPTURE(std::string(kernel.name));
        const std::string sizes = kernel.sizes == Sizes::only_8 ? "8" : "64,5000";
        const std::string how = " --transport corrupt --validate --samples 10 --warmup 0 --sizes ";
        const Met met = meet(team, row_of(line_of(kernel) + how + sizes));
        check_names(team, met);
        CHECK(met.damages.empty() == (met.seat.idle() || (team.rank() == 0 && kernel.name == std::string("bcast"))));
    }
}

void check_threads(const std::string& sizes) {
    Team team(wall_clock());
    if (!threads_allowed()) return;
    for (const char* workers : {"1:3", "3:2"}) {
        CAPTURE(std::string(workers));
        const std::string line = "latency_mt --warmup 1 --sizes " + sizes + " --workers " + workers;
        for (const char* how : {" --samples 4 --validate", " --samples 4 --batch 3"}) {
            const RowOptions row = row_of(line + how);
            const Met met = meet(team, row);
            CHECK(met.damages.empty());
            if (!met.seat.idle()) check_sizes(met.cell, row, 4);
        }
    }
}

}  // namespace

TEST_CASE("every kernel measures every size, intact, in both directions") { check_kernels(short_line); }

TEST_CASE("a transport that damages payloads is found out, by every kernel that has a payload") {
    check_kernels_find_damage(short_line);
}

TEST_SUITE("long") {
    TEST_CASE("every kernel measures every size with the window of its own") { check_kernels(own_line); }

    TEST_CASE("damaged payloads are found in every kernel with the window of its own") {
        check_kernels_find_damage(own_line);
    }

    TEST_CASE("threads at both ends measure a small and a large size") { check_threads("8,20000"); }
}

TEST_CASE("a hub has all its leaves at once, and each leaf takes its own time") {
    Team team(wall_clock());
    for (const char* pattern : {"fan-in", "fan-out"}) {
        const std::string line = std::string("bandwidth --sizes 8,5000 --samples 4 --window 3 --pattern ") + pattern;
        const RowOptions row = row_of(line + " --validate");
        const Met met = meet(team, row);
        CHECK(met.damages.empty());
        if (met.seat.role == Seat::Role::leaf) check_sizes(met.cell, row, 4);
        if (met.seat.role == Seat::Role::hub) CHECK(met.cell.sizes.empty());
        const Met damaged = meet(team, row_of(line + " --validate --transport corrupt --warmup 0"));
        check_names(team, damaged);
        const bool receives = (met.seat.role == Seat::Role::hub) == (row.pattern == std::string("fan-in"));
        CHECK(damaged.damages.empty() == (met.seat.idle() || !receives));
    }
}

TEST_CASE("a collective is timed by every rank, call by call") {
    Team team(wall_clock());
    for (const char* kernel : {"barrier", "allreduce --sizes 8"}) {
        const RowOptions row = row_of(std::string(kernel) + " --samples 7 --warmup 1 --batch 5");
        const Met met = meet(team, row);
        if (!met.seat.idle()) check_sizes(met.cell, row, 7);
    }
}

TEST_CASE("threads at both ends, intact, checked or not") { check_threads("20000"); }

TEST_CASE("no process that was forked is left") {
    Team team(wall_clock());
    const RowOptions row = row_of("latency_mp --workers 3:2 --samples 4 --sizes 8,100000 --validate");
    const Met met = meet(team, row);
    CHECK(met.damages.empty());
    if (!met.seat.idle()) check_sizes(met.cell, row, 4);
    CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
}

TEST_CASE("exactly so many iterations, in batches that divide them") {
    Team team(wall_clock());
    const Met met = meet(team, row_of("latency --iterations 60,6 --batch 10 --sizes 8,16K"));
    if (met.seat.idle()) return;
    CHECK(met.cell.sizes.at(0).count == 6);
    CHECK(met.cell.sizes.at(1).count == 1);
}

TEST_CASE("one direction only: the other end has nothing to store") {
    Team team(wall_clock());
    const Met met = meet(team, row_of("latency --directions forward --samples 3 --sizes 8"));
    const bool leads = !met.seat.idle() && team.rank() % 2 == 0;
    CHECK(met.cell.sizes.size() == (leads ? 1 : 0));
}

TEST_CASE("traffic flows until its head has had enough") {
    Team team(wall_clock());
    team.set_patient(true);
    const auto transport = transport_named("mpi").make();
    const auto memory = memory_named("host").make();
    const RowOptions row = row_of("bandwidth --sizes 4K --window 2");
    if (team.size() == 1) return;
    Seat seat = star_seat(team);
    seat.role = Seat::Role::aggressor;
    seat.slot = -1;
    Meeting meeting(team, wall_clock(), 25e-9, row, *transport, *memory,
                    {team.size() - 1, static_cast<int>(seat.peers.size()), false});
    int asked = 0;
    meeting.make_traffic(seat, 1, [&] { return ++asked < 5; });
    CHECK(asked == (team.rank() == 0 ? 5 : 0));
    team.rendezvous();
}

TEST_CASE("without --validate nothing is checked, and without damage nothing found") {
    Team team(wall_clock());
    CHECK(meet(team, row_of("latency --transport corrupt --samples 30 --sizes 64")).damages.empty());
}

TEST_CASE("the null transport costs next to nothing, yet is counted, with every kernel that needs messages only") {
    Team team(wall_clock());
    for (const KernelInfo& kernel : kernels()) {
        if (kernel.required != capability::nothing) continue;
        CAPTURE(std::string(kernel.name));
        const Met met =
            meet(team, row_of(std::string(kernel.name) + " --transport null --samples 5 --sizes " + sizes_of(kernel)));
        if (!met.cell.sizes.empty()) CHECK(met.cell.sizes.at(0).count == 5);
    }
    const Met met = meet(team, row_of("bandwidth --transport null --samples 5 --sizes 1K"));
    if (!met.seat.idle()) CHECK(met.cell.sizes.at(0).min < 1e-6F);
}

TEST_CASE("histograms hold all samples") {
    Team team(wall_clock());
    const Met met = meet(team, row_of("latency --samples 50 --histogram --sizes 8,1K"));
    if (met.seat.idle()) return;
    CHECK(met.cell.histograms.size() == 2);
    for (const auto& histogram : met.cell.histograms) {
        std::uint32_t sum = 0;
        for (const std::uint32_t count : histogram) sum += count;
        CHECK(sum == 50);
    }
}

TEST_CASE("a batch of one is one message per sample, and a budget ends the round") {
    Team team(wall_clock());
    const Met met = meet(team, row_of("latency --batch 1 --budget 0.05 --sizes 8"));
    if (!met.seat.idle()) CHECK(met.cell.sizes.at(0).count >= StopRule::fewest);
}

// The profiling interface: the library's own MPI_Barrier is weak, and does its work as PMPI_Barrier.
extern "C" int MPI_Barrier(MPI_Comm communicator) {
    ++barriers;
    return PMPI_Barrier(communicator);
}

TEST_CASE("a barrier of all ranks precedes every sample, where it is asked for") {
    Team team(wall_clock());
    if (team.size() % 2 != 0) return;
    const std::string line = "latency --pattern pairs --iterations 20 --batch 1 --warmup 5 --sizes 8,64 ";
    barriers = 0;
    meet(team, row_of(line + "--directions forward"));
    CHECK(barriers == 0);
    for (const char* checked : {"", " --validate"}) {
        CAPTURE(checked);
        const int warmup =
            *checked == 0 ? 2 : 5;  // the first repetition, and the others, which --validate checks one by one
        barriers = 0;
        const Met met = meet(team, row_of(line + "--directions forward --barrier sample" + checked));
        CHECK(barriers == 2 * (20 + warmup));
        for (const SizeResult& size : met.cell.sizes) CHECK(size.count == 20);
        CHECK(met.damages.empty());
    }
}

TEST_CASE("the mean is that of the samples or of the whole loop") {
    Team team(wall_clock());
    if (team.size() != 2) return;
    for (const char* kernel : {"latency", "put_latency"}) {
        CAPTURE(kernel);
        const std::string line = std::string(kernel) + " --directions forward --samples 20 --batch 1 --sizes 8";
        const double messages = std::string(kernel) == "latency" ? 2.0 : 1.0;
        const Met samples = meet(team, row_of(line), CountingClock());
        const Met loop = meet(team, row_of(line + " --mean loop"), CountingClock());
        if (team.rank() != 0) continue;
        CHECK(samples.cell.sizes.at(0).mean == doctest::Approx(1e-6 / messages));
        // Blocks of 3 and of 17 samples: two readings each, and one around every block.
        CHECK(loop.cell.sizes.at(0).mean == doctest::Approx(42e-6 / 20 / messages));
        CHECK(loop.cell.sizes.at(0).max == doctest::Approx(1e-6 / messages));
    }
}
