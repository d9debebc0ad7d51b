// Spreading the ranks of a host over its NICs, and binding each to cores near its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/nics.hpp"
#include "ranks/team.hpp"

namespace fablint {

// Where a rank was put.
struct Binding {
    int ranks_per_nic = 0;
    std::string nic;
    std::string note;  // why its CPUs are those that the launcher gave it; empty when it was bound
};

// Collective; before buffers are allocated, so that their memory is near as well. Rank i of a host gets NIC
// i / `ranks_per_nic` of those that are up, physical (virtual ones where there are no others) and equally fast, and its
// share of the cores near it: those of the device's `local_cpulist`, else of its NUMA node, else all. No rank gets a
// CPU that the launcher withheld from it. Ranks that cannot be bound stay as they were, and the note says why: a rank
// on the far node still measures its NIC. Throws a usage error when some host's ranks are not `ranks_per_nic` per NIC.
Binding bind_to_nics(Team& team, const std::string& sysfs, int ranks_per_nic);

// The parts of it that need no team.

using Core = std::vector<int>;  // CPUs: one, or several hardware threads

// CPUs that this process may use.
std::vector<int> allowed_cpus();

// Why so many ranks do not fit the NICs of a host, and what to do; empty when they do.
std::string misfit(const std::string& host, int ranks, int ranks_per_nic, const std::vector<Nic>& nics);

// Cores near a NIC as far as their CPUs are allowed, hardware threads of a core together.
std::vector<Core> cores_near(const std::filesystem::path& sysfs, const Nic& nic, const std::vector<int>& allowed);

// CPUs of the share `index` of `of` equal ones (0-based, of <= cores).
std::vector<int> share_of(const std::vector<Core>& cores, std::size_t index, std::size_t of);

}  // namespace fablint
