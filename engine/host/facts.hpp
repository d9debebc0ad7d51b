// Where every rank runs, and what surrounds it: the root attributes of a run that no measurement yields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "host/binding.hpp"
#include "host/nics.hpp"
#include "ranks/team.hpp"

namespace fablint {

class Facts {
  public:
    // Collective. `sysfs` is /sys. `binding`: what bind_to_nics() did; without it each rank's NIC is the nearest.
    Facts(Team& team, const std::string& sysfs, const std::optional<Binding>& binding = std::nullopt);

    // Some machine has more ranks than CPUs they may use, be they of one host or of several that share its kernel.
    // Known on all ranks.
    bool oversubscribed() const { return oversubscribed_; }

    // Collective: {host: {nic: {counter: int}}} as it is now; on rank 0, an empty object elsewhere.
    Json counters_of_all_hosts();

    // Collective: reads the counters once more, for the run as a whole.
    void read_counters_after();

    // Adds the attributes to the root's; on rank 0.
    void describe(JsonObject& root) const;

  private:
    void describe_binding(const Binding& binding);

    Team& team_;
    std::string sysfs_;
    std::vector<Nic> nics_;  // of this host; on its first rank
    bool oversubscribed_ = false;
    int machines_ = 0;                          // running kernels; on rank 0
    std::vector<std::string> cores_, nearest_;  // per rank; on rank 0
    std::vector<int> numa_, pids_;
    Json nics_json_ = Json::null();
    Json binding_ = Json::null();
    Json counters_before_ = Json::null();
    Json counters_after_ = Json::null();
};

// Variables that change how MPI and the fabric behave, from this process's environment.
Json relevant_environment();

}  // namespace fablint
