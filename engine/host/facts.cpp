#include "host/facts.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>

#include "base/mpi_c.hpp"  // SMPI_H
#include "base/sysfs.hpp"
#include "host/counters.hpp"
#include "host/gpus.hpp"
#include "memories/gpu_memory.hpp"

extern char** environ;

namespace fablint {

namespace {

// The NUMA node that contains all these CPUs; -1 if they span several nodes or sysfs does not list them.
int numa_node_of(const std::vector<int>& cpus, const std::string& sysfs) {
    std::set<int> nodes;
    for (const int cpu : cpus) {
        int node = -1;
        for (const auto& entry : entries(sysfs + "/devices/system/cpu/cpu" + std::to_string(cpu))) {
            const std::string name = entry.filename().string();
            if (name.rfind("node", 0) == 0) node = std::atoi(name.c_str() + 4);
        }
        nodes.insert(node);
        if (nodes.size() > 1) return -1;
    }
    return nodes.empty() ? -1 : *nodes.begin();
}

// An identifier of the running kernel: containers and namespaces have host names of their own, but share CPUs.
std::string machine_of(const std::string& host) {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return boot.empty() ? host : boot;
}

bool more_ranks_than_cpus(const std::vector<std::string>& machines, const std::vector<std::string>& cores) {
    std::map<std::string, std::pair<std::size_t, std::set<int>>> loads;
    for (std::size_t rank = 0; rank < cores.size(); ++rank) {
        auto& [ranks, cpus] = loads[machines[rank]];
        ++ranks;
        for (const int cpu : unfold(cores[rank])) cpus.insert(cpu);
    }
    return std::any_of(loads.begin(), loads.end(),
                       [](const auto& machine) { return machine.second.first > machine.second.second.size(); });
}

}  // namespace

Json relevant_environment() {
    static const std::array<const char*, 15> prefixes = {"OMPI_", "MPICH_", "MPIR_", "PMI",    "UCX_",
                                                         "FI_",   "PSM",    "NCCL_", "SLURM_", "PBS_",
                                                         "OMP_",  "HYDRA_", "KMP_",  "I_MPI_", "MV2_"};
    std::map<std::string, std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const std::size_t equals = text.find('=');
        const bool relevant = std::any_of(prefixes.begin(), prefixes.end(),
                                          [&](const char* prefix) { return text.rfind(prefix, 0) == 0; });
        if (relevant && equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
    JsonObject object;
    for (const auto& [name, value] : variables) object.add(name, value);
    return object.json();
}

Facts::Facts(RankGroup& rank_group, const std::string& sysfs, const std::optional<Binding>& binding,
             const std::optional<GpuApi>& gpu)
    : rank_group_(rank_group), sysfs_(sysfs) {
    const std::vector<int> cpus = allowed_cpus();
    const int numa = numa_node_of(cpus, sysfs_);
    std::vector<Nic> nics;
#ifndef SMPI_H  // a simulated host does not have the interfaces of this machine
    nics = find_nics(sysfs_);
#endif
    cores_ = rank_group_.gather(fold(cpus));
    std::string own_nic = gpu ? nic_near_gpu(sysfs_, nics, find_gpu(*gpu).pci) : "";
    if (binding) own_nic = binding->nic;
    if (own_nic.empty()) own_nic = nearest_nic(nics, numa);
    nearest_ = rank_group_.gather(own_nic);
    for (const Nic& nic : nics)
        if (nic.name == own_nic) interfaces_ = nic.netdevs;
    if (binding) describe_binding(*binding);
    for (const std::string& text : rank_group_.gather(std::to_string(numa))) numa_.push_back(std::atoi(text.c_str()));
    for (const std::string& text : rank_group_.gather(std::to_string(getpid())))
        pids_.push_back(std::atoi(text.c_str()));
    const bool speaks_for_host = rank_group_.first_rank_on_my_host() == rank_group_.rank();
    if (speaks_for_host) nics_ = nics;
    JsonObject by_host;
    const std::vector<std::string> all_nics = rank_group_.gather(speaks_for_host ? nics_json(nics_).text() : "");
    for (std::size_t rank = 0; rank < all_nics.size(); ++rank)
        if (!all_nics[rank].empty())
            by_host.add(rank_group_.host_of(static_cast<int>(rank)), Json::parsed(all_nics[rank]));
    nics_json_ = by_host.json();
    counters_before_ = counters_of_all_hosts();
#ifndef SMPI_H  // simulated hosts have CPUs of their own
    const std::vector<std::string> machines = rank_group_.gather(machine_of(rank_group_.host_of(rank_group_.rank())));
    machines_ = static_cast<int>(std::set<std::string>(machines.begin(), machines.end()).size());
    const bool too_many = rank_group_.rank() == 0 && more_ranks_than_cpus(machines, cores_);
    oversubscribed_ = rank_group_.maximum(too_many ? 1.0 : 0.0) > 0.0;
#endif
}

// The GPU of this rank. A rank that cannot use one has none here: the row that requires it reports the reason.
GpuProperties Facts::find_gpu(GpuApi api) {
    GpuProperties gpu;
    attempt([&] {
        const GpuRuntime& runtime = GpuRuntime::of(api);
        gpu = runtime.properties(gpu_of(runtime, index_on_host(rank_group_.rank_host(), rank_group_.rank())));
    });
    gpus_ = rank_group_.gather(gpu.pci.empty() ? "" : gpu_label(sysfs_, api, gpu.pci));
    gpu_models_ = rank_group_.gather(gpu.name);
    gpu_addresses_ = rank_group_.gather(gpu.pci);
    return gpu;
}

void Facts::describe_binding(const Binding& binding) {
    std::map<std::string, std::vector<int>> ranks;
    const std::vector<std::string> notes = rank_group_.gather(binding.note);
    for (std::size_t rank = 0; rank < notes.size(); ++rank)
        if (!notes[rank].empty()) ranks[notes[rank]].push_back(static_cast<int>(rank));
    std::vector<std::string> texts;
    for (const auto& [note, with] : ranks)
        texts.push_back((with.size() == 1 ? "rank " : "ranks ") + fold(with) + " not bound to CPUs: " + note);
    binding_ = JsonObject().add("ranks_per_nic", binding.ranks_per_nic).add("notes", Json::list(texts)).json();
}

Json Facts::counters_of_all_hosts() {
    const bool speaks_for_host = rank_group_.first_rank_on_my_host() == rank_group_.rank();
    const std::vector<std::string> all = rank_group_.gather(speaks_for_host ? counters_json(sysfs_, nics_).text() : "");
    JsonObject by_host;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (!all[rank].empty()) by_host.add(rank_group_.host_of(static_cast<int>(rank)), Json::parsed(all[rank]));
    return by_host.json();
}

void Facts::read_counters_after() { counters_after_ = counters_of_all_hosts(); }

void Facts::describe(JsonObject& root) const {
    JsonObject counters;
    counters.add("before", counters_before_);
    if (counters_after_.text() != "null") counters.add("after", counters_after_);
    root.add("ranks", rank_group_.size())
        .add("hosts", Json::list(rank_group_.hosts()))
        .add("rank_host", Json::list(rank_group_.rank_host()))
        .add("rank_cores", Json::list(cores_))
        .add("rank_numa", Json::list(numa_))
        .add("rank_nic", Json::list(nearest_))
        .add("rank_pid", Json::list(pids_))
        .add("nics", nics_json_)
        .add("counters", counters.json())
        .add("environment", relevant_environment());
    if (!gpus_.empty())
        root.add("rank_gpu", Json::list(gpus_))
            .add("rank_gpu_model", Json::list(gpu_models_))
            .add("rank_gpu_pci", Json::list(gpu_addresses_));
    if (machines_ > 0) root.add("machines", machines_);
    if (binding_.text() != "null") root.add("binding", binding_);
}

}  // namespace fablint
