// Facts of the run that are not measured: CPUs, NIC and GPU of this rank, NICs of its host, environment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "gpu/gpu_runtime.hpp"
#include "host/binding.hpp"
#include "host/counters.hpp"
#include "host/nics.hpp"
#include "ranks/rank_group.hpp"

namespace fablint {

class Facts {
  public:
    // Collective. `sysfs` is /sys. `binding`: result of bind_to_nics(); without it the NIC of a rank is the nearest
    // one. `gpu`: the run uses memory of GPUs; the NIC of a rank is then the one nearest to its GPU.
    Facts(RankGroup& rank_group, const std::string& sysfs, const std::optional<Binding>& binding = std::nullopt,
          const std::optional<GpuApi>& gpu = std::nullopt);

    // Does a machine have more ranks than CPUs that they may use? Hosts that share a kernel are one machine. The same
    // on all ranks.
    bool oversubscribed() const { return oversubscribed_; }

    // The network interfaces of the NIC nearest to this rank; empty if the host has no NIC.
    const std::vector<std::string>& interfaces() const { return interfaces_; }

    // Facts of this rank as texts, by the name of the array that has those of all ranks.
    const std::map<std::string, std::string>& texts() const { return texts_; }
    int numa() const { return numa_; }
    // The NICs of this host as JSON, on its first rank; elsewhere empty.
    std::string nics_text() const { return rank_group_.speaks_for_host() ? nics_json(nics_).text() : ""; }
    // The present counters of this host, on its first rank.
    std::vector<NicCounters> counters() const { return counters_of(sysfs_, nics_); }

    // Adds the facts that the ranks have in common to the root attributes; on rank 0.
    void describe(JsonObject& root) const;

  private:
    GpuProperties find_gpu(GpuApi api);
    void describe_binding(const Binding& binding);
    void count_machines(const std::string& cores);

    RankGroup& rank_group_;
    std::string sysfs_;
    std::vector<Nic> nics_;  // of this host; on its first rank
    std::map<std::string, std::string> texts_;
    int numa_ = -1;
    bool oversubscribed_ = false;
    std::vector<std::string> interfaces_;
    int machines_ = 0;  // running kernels; on rank 0
    Json binding_ = Json::null();
};

// Variables of this process's environment that change the behaviour of MPI and the fabric.
Json relevant_environment();

}  // namespace fablint
