// Port counters of network interfaces, read from sysfs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "host/nics.hpp"

namespace fablint {

// Counters of one interface, by their names in sysfs: Slingshot's telemetry (traffic, errors and congestion of the
// port, a selection of about 1400 names), InfiniBand's `counters` and `hw_counters`, and `statistics` and
// `carrier_changes` of its first network interface. Counters that cannot be read are omitted.
std::map<std::string, long long> read_counters(const std::filesystem::path& sysfs, const Nic& nic);

// Name of an interface, and its counters.
using NicCounters = std::pair<std::string, std::map<std::string, long long>>;

std::vector<NicCounters> counters_of(const std::filesystem::path& sysfs, const std::vector<Nic>& nics);

}  // namespace fablint
