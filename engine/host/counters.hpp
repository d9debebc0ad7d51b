// Port counters of network interfaces, read from sysfs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "host/nics.hpp"

namespace fablint {

// Counters of one interface, by their names in sysfs: Slingshot's telemetry (traffic, errors, congestion: of about 1400
// names those that say something about the port), InfiniBand's `counters` and `hw_counters`, and of its first network
// interface the `statistics` and `carrier_changes`. What cannot be read is left out.
std::map<std::string, long long> read_counters(const std::filesystem::path& sysfs, const Nic& nic);

// {nic: {counter: int}}
Json counters_json(const std::filesystem::path& sysfs, const std::vector<Nic>& nics);

}  // namespace fablint
