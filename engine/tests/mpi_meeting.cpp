// Collective, see mpi_team.cpp. Ranks meet in pairs 0-1, 2-3, ...; with an odd number the last looks on.
#include <doctest.h>

#include <cmath>

#include "../meeting.hpp"
#include "../table.hpp"

using namespace fablint;

namespace {

RowOptions row_of(const std::string& line) { return parse_plan(line, "test").at(0); }

struct Met {
    Cell cell;
    std::vector<Damage> damages;
    bool took_part = false;
};

Met meet(Team& team, const RowOptions& row) {
    const auto transport = transport_named(row.transport).make();
    const auto memory = memory_named(row.memory).make();
    Meeting meeting(team, wall_clock(), 25e-9, row, *transport, *memory);
    const int partner = team.rank() ^ 1;
    Met met;
    if (partner < team.size()) {
        met.cell = meeting.meet(partner, team.rank() < partner, 0);
        met.took_part = true;
    }
    met.damages = meeting.damages();
    team.rendezvous();
    return met;
}

}  // namespace

TEST_CASE("every kernel measures every size, intact, in both directions") {
    Team team(wall_clock());
    team.set_patient(true);
    for (const KernelInfo& kernel : kernels()) {
        const std::string sizes = kernel.empty_messages ? "0,1,8,4096,100000" : "1,8,4096,100000";
        const RowOptions row = row_of(std::string(kernel.name) + " --validate --samples 4 --warmup 2 --sizes " + sizes);
        const Met met = meet(team, row);
        CHECK(met.damages.empty());
        if (!met.took_part) continue;
        CHECK(met.cell.sizes.size() == row.sizes.size());
        for (const SizeResult& size : met.cell.sizes) {
            CHECK(size.count == 4);
            CHECK(size.min > 0.0F);
            CHECK(size.min <= size.median);
            CHECK(size.median <= size.p99);
            CHECK(size.p99 <= size.max);
            CHECK(size.mean <= size.max);
        }
    }
}

TEST_CASE("a transport that damages payloads is found out, by every kernel") {
    Team team(wall_clock());
    team.set_patient(true);
    for (const KernelInfo& kernel : kernels()) {
        const RowOptions row =
            row_of(std::string(kernel.name) + " --transport corrupt --validate --samples 30 --sizes 64,5000");
        const Met met = meet(team, row);
        if (!met.took_part) continue;
        CHECK_FALSE(met.damages.empty());
        for (const Damage& damage : met.damages) {
            CHECK(damage.src == (team.rank() ^ 1));
            CHECK(damage.dst == team.rank());
            CHECK(damage.offset < damage.size);
        }
    }
}

TEST_CASE("without --validate nothing is checked, and without damage nothing found") {
    Team team(wall_clock());
    team.set_patient(true);
    CHECK(meet(team, row_of("latency --transport corrupt --samples 30 --sizes 64")).damages.empty());
}

TEST_CASE("the null transport costs next to nothing, yet is counted") {
    Team team(wall_clock());
    team.set_patient(true);
    const Met met = meet(team, row_of("bandwidth --transport null --samples 5 --sizes 1K"));
    if (!met.took_part) return;
    CHECK(met.cell.sizes.at(0).count == 5);
    CHECK(met.cell.sizes.at(0).min < 1e-6F);
}

TEST_CASE("histograms hold all samples") {
    Team team(wall_clock());
    team.set_patient(true);
    const Met met = meet(team, row_of("latency --samples 50 --histogram --sizes 8,1K"));
    if (!met.took_part) return;
    CHECK(met.cell.histograms.size() == 2);
    for (const auto& histogram : met.cell.histograms) {
        std::uint32_t sum = 0;
        for (const std::uint32_t count : histogram) sum += count;
        CHECK(sum == 50);
    }
}

TEST_CASE("a batch of one is one message per sample, and a budget ends the round") {
    Team team(wall_clock());
    team.set_patient(true);
    const Met met = meet(team, row_of("latency --batch 1 --budget 0.05 --sizes 8"));
    if (met.took_part) CHECK(met.cell.sizes.at(0).count >= StopRule::fewest);
}
