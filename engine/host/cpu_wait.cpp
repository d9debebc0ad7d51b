#include "host/cpu_wait.hpp"

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

Json CpuWait::collect() {
    const double waited_s = cpu_wait_s() - before_s_;
    std::vector<double> of_ranks;
    bool is_known = false;
    for (const std::string& text : rank_group_.gather(std::to_string(waited_s))) {
        of_ranks.push_back(std::stod(text));
        is_known = is_known || std::isfinite(of_ranks.back());
    }
    return is_known ? Json::list(of_ranks) : Json::null();
}

}  // namespace fablint
