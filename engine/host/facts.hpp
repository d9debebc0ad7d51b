// Facts of the run that are not measured: hosts, CPUs and NICs of the ranks, environment. They are root attributes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "gpu/gpu_runtime.hpp"
#include "host/binding.hpp"
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

    // Collective: the present counters, {host: {nic: {counter: int}}}, on rank 0; an empty object elsewhere.
    Json counters_of_all_hosts();

    // Collective: reads the counters at the end of the run.
    void read_counters_after();

    // Adds the facts to the root attributes; on rank 0.
    void describe(JsonObject& root) const;

  private:
    GpuProperties find_gpu(GpuApi api);
    void describe_binding(const Binding& binding);

    RankGroup& rank_group_;
    std::string sysfs_;
    std::vector<Nic> nics_;  // of this host; on its first rank
    bool oversubscribed_ = false;
    std::vector<std::string> interfaces_;
    int machines_ = 0;                          // running kernels; on rank 0
    std::vector<std::string> cores_, nearest_;  // per rank; on rank 0
    std::vector<int> numa_, pids_;
    std::vector<std::string> gpus_, gpu_models_, gpu_addresses_;  // per rank; on rank 0; empty in runs without GPUs
    Json nics_json_ = Json::null();
    Json binding_ = Json::null();
    Json counters_before_ = Json::null();
    Json counters_after_ = Json::null();
};

// Variables of this process's environment that change the behaviour of MPI and the fabric.
Json relevant_environment();

}  // namespace fablint
