#include "kernel.hpp"

#include "table.hpp"

namespace fablint {

const std::vector<KernelInfo>& kernels() {
    static const std::vector<KernelInfo> table = {
        {"latency", "half a round trip", "OSU MPI Latency Test", true, latency_kernel},
        {"bandwidth", "one-way stream of windows, acknowledged", "OSU MPI Bandwidth Test", false, bandwidth_kernel},
        {"bibandwidth", "streams in both directions at once", "OSU MPI Bi-Directional Bandwidth Test", false,
         bibandwidth_kernel},
        {"exchange", "both ends send one message at once", "OSU MPI Exchange Latency Test", true, exchange_kernel},
    };
    return table;
}

const KernelInfo& kernel_named(const std::string& name) { return row_named(kernels(), name, "kernel"); }

}  // namespace fablint
