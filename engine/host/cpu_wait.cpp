#include "host/cpu_wait.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <vector>

#include "base/mpi_c.hpp"  // SMPI_H

namespace fablint {

double cpu_wait_s(const std::string& file) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
#ifdef SMPI_H  // all simulated ranks are one process
    return unknown;
#endif
    std::ifstream stream(file);
    std::uint64_t running_ns = 0, waiting_ns = 0;
    if (!(stream >> running_ns >> waiting_ns)) return unknown;
    // A kernel that has the file and does not count reports zeros; a process that runs has run.
    return running_ns + waiting_ns == 0 ? unknown : static_cast<double>(waiting_ns) * 1e-9;
}

void CpuWait::begin() { before_s_ = cpu_wait_s(); }

std::vector<float> CpuWait::collect() {
    const auto waited_s = static_cast<float>(cpu_wait_s() - before_s_);
    std::vector<float> of_ranks = rank_group_.gather_numbers(waited_s);
    const bool is_known = std::any_of(of_ranks.begin(), of_ranks.end(), [](float wait) { return std::isfinite(wait); });
    return is_known ? of_ranks : std::vector<float>();
}

}  // namespace fablint
