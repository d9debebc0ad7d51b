// Network interfaces and their port counters, read from sysfs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "json.hpp"

namespace fablint {

struct Nic {
    std::string name;
    std::string kind;         // "ethernet" or "infiniband"
    std::string state;        // as the kernel says: up, down, 4: ACTIVE, ...
    double speed_mbps = 0.0;  // 0: unknown
    int mtu = 0;              // 0: unknown
    int numa = -1;            // -1: unknown

    bool up() const;
};

// All interfaces of this host but the loopback, sorted by name. `sysfs` is /sys, or a copy of it in tests.
std::vector<Nic> find_nics(const std::filesystem::path& sysfs);

// The best interface for a rank on a NUMA node: up first, then of that node, then the fastest. Empty when none is up.
std::string nearest_nic(const std::vector<Nic>& nics, int numa);

// Counters that sysfs shows for one interface, by name.
std::map<std::string, long long> read_counters(const std::filesystem::path& sysfs, const Nic& nic);

Json nics_json(const std::vector<Nic>& nics);
Json counters_json(const std::filesystem::path& sysfs, const std::vector<Nic>& nics);

}  // namespace fablint
