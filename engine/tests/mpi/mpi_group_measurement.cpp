// Collective, see mpi_rank_group.cpp: each case measures rows with all ranks. A single rank has no partner.
#include <doctest.h>

#include <sys/wait.h>

#include <cerrno>
#include <cmath>

#include "base/mpi_c.hpp"
#include "base/table.hpp"
#include "measure/group_measurement.hpp"
#include "ranks/mpi_control.hpp"
#include "tests/transport_availability.hpp"

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
    Role role;
};

// Rank 0 has all others as its leaves.
Role star_role(const RankGroup& rank_group) {
    Role role{rank_group.rank() == 0 ? Role::Kind::hub : Role::Kind::leaf, {}, 0, 0};
    if (rank_group.rank() > 0) role.peers = {0};
    for (int rank = 1; rank < rank_group.size() && rank_group.rank() == 0; ++rank) role.peers.push_back(rank);
    return role;
}

// Pairs are 0-1, 2-3, ...; with an odd number of ranks the last one is idle.
Role pair_role(const RankGroup& rank_group) {
    const int partner = rank_group.rank() ^ 1;
    return partner < rank_group.size() ? Role{Role::Kind::pair, {partner}, rank_group.rank() / 2, -1} : Role{};
}

Role role_of(const RankGroup& rank_group, const RowOptions& row) {
    if (row.pattern_info().has_stars()) return star_role(rank_group);
    if (row.pattern_info().has_pairs()) return pair_role(rank_group);
    return {Role::Kind::world, {}, 0, 0};
}

Met meet(RankGroup& rank_group, const RowOptions& row, const Clock& clock = wall_clock()) {
    if (rank_group.size() == 1) return {};
    rank_group.set_yielding(true);
    TransportSettings settings;
    settings.required = row.kernel_info().required;
    settings.rank = rank_group.rank();
    settings.streams = row.streams;
    settings.provider = row.ofi_provider;
    settings.yielding = true;
    const auto transport = transport_named(row.transport).make(settings);
    const auto memory = make_memory(row.memory);
    Met met;
    met.role = role_of(rank_group, row);
    GroupMeasurement::GroupShape group_shape;
    group_shape.fan = row.pattern_info().has_stars() ? rank_group.size() - 1 : 1;
    group_shape.own_fan = std::max(1, static_cast<int>(met.role.peers.size()));
    group_shape.hub_leads = row.pattern == "fan-out";
    GroupMeasurement measurement(rank_group, clock, 25e-9, row, *transport, *memory, group_shape);
    if (!met.role.idle()) met.cell = measurement.measure(met.role, rank_group.rank() < met.role.partner(), 0);
    met.damages = measurement.damages();
    rank_group.barrier();
    return met;
}

bool threads_allowed() {
    int provided = 0;
    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE;
}

// gpu_loopback is tested with fake drivers of GPUs: tests/unit/test_gpu_runtime.cpp, and launches of the front end.
bool runs_here(const KernelInfo& kernel) {
    const std::string name = kernel.name;
    return name != "gpu_loopback" && (name != "latency_mt" || threads_allowed());
}

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

// Messages in flight: few, since sanitizers look at every byte; or as many as without --window.
enum class InFlight { few, by_default };

std::string line_of(const KernelInfo& kernel, InFlight in_flight) {
    return std::string(kernel.name) + (kernel.windowed() && in_flight == InFlight::few ? " --window 5" : "");
}

// A kernel without a window has the same row in both ways, which is measured once.
bool differs(const KernelInfo& kernel, InFlight in_flight) { return in_flight == InFlight::few || kernel.windowed(); }

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

// The sender of a damaged message is a peer, or a rank of the world; -1 where all ranks contributed.
void check_names(const RankGroup& rank_group, const Met& met) {
    for (const Damage& damage : met.damages) {
        CHECK(damage.dst == rank_group.rank());
        CHECK(damage.offset < damage.size);
        const bool peer = std::count(met.role.peers.begin(), met.role.peers.end(), damage.src) == 1;
        const bool world = met.role.kind == Role::Kind::world && damage.src >= -1 && damage.src < rank_group.size();
        CHECK((peer || world));
    }
}

void check_kernels(InFlight in_flight) {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const KernelInfo& kernel : kernels()) {
        if (!runs_here(kernel) || !differs(kernel, in_flight)) continue;
        CAPTURE(std::string(kernel.name));
        const RowOptions row =
            row_of(line_of(kernel, in_flight) + " --validate --samples 3 --warmup 2 --sizes " + sizes_of(kernel));
        const Met met = meet(rank_group, row);
        CHECK(met.damages.empty());
        if (!met.role.idle()) check_sizes(met.cell, row, 3);
    }
}

// Every kernel over every other transport that offers what it requires.
void check_transports(const std::string& options) {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const TransportInfo& transport : transports()) {
        if (transport.moves_nothing || (transport.offers & capability::collectives) != 0) continue;
        if ((!options.empty() && !transport.accepts("streams")) || !is_available(transport)) continue;
        for (const KernelInfo& kernel : kernels()) {
            if (!runs_here(kernel) || (kernel.required & ~transport.offers) != 0) continue;
            CAPTURE(std::string(transport.name));
            CAPTURE(std::string(kernel.name));
            const RowOptions row =
                row_of(line_of(kernel, InFlight::few) + " --validate --samples 3 --warmup 2 --sizes " +
                       sizes_of(kernel) + " --transport " + transport.name + options);
            const Met met = meet(rank_group, row);
            CHECK(met.damages.empty());
            if (!met.role.idle()) check_sizes(met.cell, row, 3);
        }
    }
}

// A root that has the data, or a rank that only sends to the root.
bool receives_nothing(const std::string& kernel, int rank) {
    const std::string call = kernel.front() == 'i' ? kernel.substr(1) : kernel;
    return rank == 0 ? call == "bcast" : call == "reduce" || call == "gather" || call == "gatherv";
}

void check_kernels_find_damage(InFlight in_flight) {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const KernelInfo& kernel : kernels()) {
        if (!runs_here(kernel) || !differs(kernel, in_flight) || kernel.payload == Sender::none) continue;
        CAPTURE(std::string(kernel.name));
        const std::string sizes = kernel.sizes == Sizes::only_8 ? "8" : "64,5000";
        const std::string how = " --transport corrupt --validate --samples 10 --warmup 0 --sizes ";
        const Met met = meet(rank_group, row_of(line_of(kernel, in_flight) + how + sizes));
        check_names(rank_group, met);
        CHECK(met.damages.empty() == (met.role.idle() || receives_nothing(kernel.name, rank_group.rank())));
    }
}

void check_threads(const std::string& sizes) {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    if (!threads_allowed()) return;
    for (const char* workers : {"1:3", "3:2"}) {
        CAPTURE(std::string(workers));
        // The budget is for many ranks that poll on few CPUs: the threads of 8 need more than a minute on 2 busy ones.
        const std::string line = "latency_mt --warmup 1 --samples 4 --budget 600 --sizes " + sizes + " --workers ";
        for (const char* how : {" --validate", " --batch 3"}) {
            const RowOptions row = row_of(line + workers + how);
            const Met met = meet(rank_group, row);
            CHECK(met.damages.empty());
            if (!met.role.idle()) check_sizes(met.cell, row, 4);
        }
    }
}

}  // namespace

TEST_CASE("every kernel measures every size, intact, in both directions") { check_kernels(InFlight::few); }

TEST_CASE("every kernel with a payload detects a transport that damages payloads") {
    check_kernels_find_damage(InFlight::few);
}

TEST_CASE("every transport carries every kernel that requires what it offers, intact") { check_transports(""); }

TEST_CASE("several streams of a pair carry small and large messages, intact") { check_transports(" --streams 3"); }

// tcp and shm copy small messages when they are sent, udp does not.
TEST_CASE("every provider of libfabric carries messages of every size, intact") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const std::string provider : {"tcp", "shm", "udp"}) {
        CAPTURE(provider);
        TransportSettings settings;
        settings.provider = provider;
        if (!is_available(transport_named("ofi"), settings)) continue;
        const std::string options = " --validate --samples 3 --warmup 2 --transport ofi --ofi-provider " + provider;
        for (const char* line : {"latency --sizes 0,8,5000", "bandwidth --window 5 --sizes 1,5000"}) {
            const RowOptions row = row_of(line + options);
            const Met met = meet(rank_group, row);
            CHECK(met.damages.empty());
            if (!met.role.idle()) check_sizes(met.cell, row, 3);
        }
    }
}

TEST_SUITE("long") {
    TEST_CASE("every kernel measures every size with its default window") { check_kernels(InFlight::by_default); }

    TEST_CASE("every kernel detects damaged payloads with its default window") {
        check_kernels_find_damage(InFlight::by_default);
    }

    TEST_CASE("threads at both ends measure a small and a large size") { check_threads("8,20000"); }
}

TEST_CASE("a hub has all its leaves at once, and each leaf takes its own time") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const char* pattern : {"fan-in", "fan-out"}) {
        const std::string line = std::string("bandwidth --sizes 8,5000 --samples 4 --window 3 --pattern ") + pattern;
        const RowOptions row = row_of(line + " --validate");
        const Met met = meet(rank_group, row);
        CHECK(met.damages.empty());
        if (met.role.kind == Role::Kind::leaf) check_sizes(met.cell, row, 4);
        if (met.role.kind == Role::Kind::hub) CHECK(met.cell.sizes.empty());
        const Met damaged = meet(rank_group, row_of(line + " --validate --transport corrupt --warmup 0"));
        check_names(rank_group, damaged);
        const bool receives = (met.role.kind == Role::Kind::hub) == (row.pattern == std::string("fan-in"));
        CHECK(damaged.damages.empty() == (met.role.idle() || !receives));
    }
}

TEST_CASE("a collective is timed by every rank, call by call") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const char* kernel : {"barrier", "allreduce --sizes 8"}) {
        const RowOptions row = row_of(std::string(kernel) + " --samples 7 --warmup 1 --batch 5");
        const Met met = meet(rank_group, row);
        if (!met.role.idle()) check_sizes(met.cell, row, 7);
    }
}

TEST_CASE("threads at both ends, intact, checked or not") { check_threads("20000"); }

TEST_CASE("no forked process remains") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const RowOptions row = row_of("latency_mp --workers 3:2 --samples 4 --sizes 8,100000 --validate");
    const Met met = meet(rank_group, row);
    CHECK(met.damages.empty());
    if (!met.role.idle()) check_sizes(met.cell, row, 4);
    CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
}

TEST_CASE("exactly so many iterations, in batches that divide them") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const Met met = meet(rank_group, row_of("latency --iterations 60,6 --batch 10 --sizes 8,16K"));
    if (met.role.idle()) return;
    CHECK(met.cell.sizes.at(0).count == 6);
    CHECK(met.cell.sizes.at(1).count == 1);
}

TEST_CASE("one direction only: the other end has nothing to store") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const Met met = meet(rank_group, row_of("latency --directions single --samples 3 --sizes 8"));
    const bool leads = !met.role.idle() && rank_group.rank() % 2 == 0;
    CHECK(met.cell.sizes.size() == (leads ? 1 : 0));
}

TEST_CASE("traffic continues until its head stops it") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    rank_group.set_yielding(true);
    const auto transport = transport_named("mpi").make({});
    const auto memory = make_memory("host");
    const RowOptions row = row_of("bandwidth --sizes 4K --window 2");
    if (rank_group.size() == 1) return;
    Role role = star_role(rank_group);
    role.kind = Role::Kind::aggressor;
    role.slot = -1;
    GroupMeasurement measurement(rank_group, wall_clock(), 25e-9, row, *transport, *memory,
                                 {rank_group.size() - 1, static_cast<int>(role.peers.size()), false});
    int asked = 0;
    measurement.make_traffic(role, 1, [&] { return ++asked < 5; });
    CHECK(asked == (rank_group.rank() == 0 ? 5 : 0));
    rank_group.barrier();
}

TEST_CASE("without --validate nothing is checked") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    CHECK(meet(rank_group, row_of("latency --transport corrupt --samples 30 --sizes 64")).damages.empty());
}

TEST_CASE(
    "the null transport takes almost no time, and its samples are counted, with every kernel that requires no "
    "capability") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    for (const KernelInfo& kernel : kernels()) {
        if (!runs_here(kernel) || kernel.required != capability::nothing) continue;
        CAPTURE(std::string(kernel.name));
        const Met met = meet(
            rank_group, row_of(std::string(kernel.name) + " --transport null --samples 5 --sizes " + sizes_of(kernel)));
        if (!met.cell.sizes.empty()) CHECK(met.cell.sizes.at(0).count == 5);
    }
    const Met met = meet(rank_group, row_of("bandwidth --transport null --samples 5 --sizes 1K"));
    if (!met.role.idle()) CHECK(met.cell.sizes.at(0).min < 1e-6F);
}

TEST_CASE("histograms hold all samples") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const Met met = meet(rank_group, row_of("latency --samples 50 --histogram --sizes 8,1K"));
    if (met.role.idle()) return;
    CHECK(met.cell.histograms.size() == 2);
    for (const auto& histogram : met.cell.histograms) {
        std::uint32_t sum = 0;
        for (const std::uint32_t count : histogram) sum += count;
        CHECK(sum == 50);
    }
}

TEST_CASE("a batch of one is one message per sample, and a budget ends the round") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const Met met = meet(rank_group, row_of("latency --batch 1 --budget 0.05 --sizes 8"));
    if (!met.role.idle()) CHECK(met.cell.sizes.at(0).count >= StopRule::fewest);
}

// The profiling interface: the library's own MPI_Barrier is weak, and does its work as PMPI_Barrier.
extern "C" int MPI_Barrier(MPI_Comm communicator) {
    ++barriers;
    return PMPI_Barrier(communicator);
}

TEST_CASE("with --barrier sample a barrier of all ranks precedes every sample") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    if (rank_group.size() % 2 != 0) return;
    const std::string line = "latency --pattern pairs --iterations 20 --batch 1 --warmup 5 --sizes 8,64 ";
    barriers = 0;
    meet(rank_group, row_of(line + "--directions single"));
    CHECK(barriers == 0);
    for (const char* checked : {"", " --validate"}) {
        CAPTURE(checked);
        const int warmup =
            *checked == 0 ? 2 : 5;  // the first repetition, and the others, which --validate checks one by one
        barriers = 0;
        const Met met = meet(rank_group, row_of(line + "--directions single --barrier sample" + checked));
        CHECK(barriers == 2 * (20 + warmup));
        for (const SizeResult& size : met.cell.sizes) CHECK(size.count == 20);
        CHECK(met.damages.empty());
    }
}

TEST_CASE("the mean is that of the samples or of the whole loop") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    if (rank_group.size() != 2) return;
    for (const char* kernel : {"latency", "put_latency"}) {
        CAPTURE(kernel);
        const std::string line = std::string(kernel) + " --directions single --samples 20 --batch 1 --sizes 8";
        const double messages = std::string(kernel) == "latency" ? 2.0 : 1.0;
        const Met samples = meet(rank_group, row_of(line), CountingClock());
        const Met loop = meet(rank_group, row_of(line + " --mean loop"), CountingClock());
        if (rank_group.rank() != 0) continue;
        CHECK(samples.cell.sizes.at(0).mean == doctest::Approx(1e-6 / messages));
        // Blocks of 3 and of 17 samples: two readings each, and one around every block.
        CHECK(loop.cell.sizes.at(0).mean == doctest::Approx(42e-6 / 20 / messages));
        CHECK(loop.cell.sizes.at(0).max == doctest::Approx(1e-6 / messages));
    }
}
