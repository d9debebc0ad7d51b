// Where every rank runs, and what surrounds it: the root attributes of a run that no measurement yields.
#pragma once

#include <string>
#include <vector>

#include "json.hpp"
#include "nics.hpp"
#include "team.hpp"

namespace fablint {

class Facts {
  public:
    // Collective. `sysfs` is /sys.
    Facts(Team& team, const std::string& sysfs);

    // Some host has more ranks than CPUs they may use. Known on all ranks.
    bool oversubscribed() const { return oversubscribed_; }

    // Collective: reads the counters once more.
    void read_counters_after();

    // Adds the attributes to the root's; on rank 0.
    void describe(JsonObject& root) const;

  private:
    Json counters_of_all_hosts();

    Team& team_;
    std::string sysfs_;
    std::vector<Nic> nics_;  // of this host; on its first rank
    bool oversubscribed_ = false;
    std::vector<std::string> cores_, nearest_;  // per rank; on rank 0
    std::vector<int> numa_, pids_;
    Json nics_json_ = Json::null();
    Json counters_before_ = Json::null();
    Json counters_after_ = Json::null();
};

// CPU numbers folded: {0,1,2,8} -> "0-2,8".
std::string fold(const std::vector<int>& numbers);

// Variables that change how MPI and the fabric behave, from this process's environment.
Json relevant_environment();

}  // namespace fablint
