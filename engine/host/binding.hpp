// Distribution of the ranks of a host over its NICs, and binding to cores near the NIC.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/nics.hpp"
#include "ranks/rank_group.hpp"

namespace fablint {

// NIC and CPUs of a rank.
struct Binding {
    int ranks_per_nic = 0;
    std::string nic;
    std::string note;  // reason why the rank keeps the CPUs of the launcher; empty if it is bound
};

// Collective. To be called before buffers are allocated, so that their memory is near as well. Rank i of a host gets
// NIC i / `ranks_per_nic` among those that are up, physical (virtual ones if there are no others) and equally fast, and
// its share of the cores near the NIC: those of the device's `local_cpulist`, otherwise of its NUMA node, otherwise
// all. CPUs that the launcher does not allow are not used. Ranks that cannot be bound keep their CPUs, with the reason
// in the note: a rank on the far node still measures its NIC. Throws a usage error if a host does not have
// `ranks_per_nic` ranks per NIC.
Binding bind_to_nics(RankGroup& rank_group, const std::string& sysfs, int ranks_per_nic);

// The following functions need no MPI.

// The index of a rank among the ranks of its host. `rank_host`: the host of each rank.
int index_on_host(const std::vector<int>& rank_host, int rank);

using Core = std::vector<int>;  // CPUs: one, or several hardware threads

// CPUs that this process may use.
std::vector<int> allowed_cpus();

// The reason why the ranks do not fit the NICs of a host, and what to do; empty if they fit.
std::string misfit(const std::string& host, int ranks, int ranks_per_nic, const std::vector<Nic>& nics);

// Cores near a NIC, restricted to allowed CPUs; the hardware threads of a core are together.
std::vector<Core> cores_near(const std::filesystem::path& sysfs, const Nic& nic, const std::vector<int>& allowed);

// CPUs of share `index` (from 0) of `of` equal shares; requires `of` <= number of cores.
std::vector<int> share_of(const std::vector<Core>& cores, std::size_t index, std::size_t of);

}  // namespace fablint
