// Clocks. An interface, because simulated MPI has its own time: under SimGrid's SMPI, std::chrono is the time of the
// real machine.
#pragma once

namespace fablint {

class Clock {
  public:
    virtual ~Clock() = default;
    virtual const char* name() const = 0;
    virtual double now() const = 0;  // seconds since an arbitrary instant
};

// The clock of this build: steady_clock, or MPI_Wtime under SMPI.
const Clock& wall_clock();

// Measured properties of a clock.
struct ClockFacts {
    double resolution_s;  // smallest observed step
    double overhead_s;    // one reading, median of several runs
};
ClockFacts examine(const Clock& clock);

}  // namespace fablint
