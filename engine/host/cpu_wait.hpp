// Time that the measuring thread of a rank waited for a CPU while another thread ran there: such a time is part of the
// time of a message. The kernel's clock is read before and after the row, not while messages are timed.
#pragma once

#include <string>
#include <vector>

#include "ranks/rank_group.hpp"

namespace fablint {

// The time in s that the first thread of this process has waited for a CPU since its start; NaN if the kernel does not
// count it (built without CONFIG_SCHED_INFO). `file`: as proc_pid_schedstat(5) describes it.
double cpu_wait_s(const std::string& file = "/proc/self/schedstat");

class CpuWait {
  public:
    explicit CpuWait(RankGroup& rank_group) : rank_group_(rank_group) {}

    void begin();  // reads the clock of this rank
    // Collective: the waits of all ranks since begin(), s, on rank 0; empty if no rank knows its own.
    std::vector<float> collect();

  private:
    RankGroup& rank_group_;
    double before_s_ = 0.0;
};

}  // namespace fablint
