#include "base/clock.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/mpi_c.hpp"

namespace fablint {

namespace {

#ifdef SMPI_H
class MpiClock : public Clock {
  public:
    const char* name() const override { return "MPI_Wtime"; }
    double now() const override { return MPI_Wtime(); }
};
using BuildClock = MpiClock;
#else
class SteadyClock : public Clock {
  public:
    const char* name() const override { return "steady_clock"; }
    double now() const override {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
};
using BuildClock = SteadyClock;
#endif

}  // namespace

const Clock& wall_clock() {
    static const BuildClock clock;
    return clock;
}

ClockFacts examine(const Clock& clock) {
    constexpr int runs = 11;
    constexpr int readings = 300;
    std::array<double, runs> cost{};
    double resolution = 1.0;
    for (double& run : cost) {
        const double begin = clock.now();
        double last = begin;
        for (int i = 0; i < readings; ++i) {
            const double now = clock.now();
            if (now > last) resolution = std::min(resolution, now - last);
            last = now;
        }
        run = (last - begin) / readings;
    }
    std::nth_element(cost.begin(), cost.begin() + runs / 2, cost.end());
    return {resolution, cost[runs / 2]};
}

}  // namespace fablint
