#include "host/facts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/mpi_c.hpp"  // SMPI_H
#include "base/sysfs.hpp"
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

// The running kernel: containers and namespaces have host names of their own, but share CPUs. A hash: a million names
// are more than rank 0 should hold.
std::uint64_t machine_of(const std::string& host) {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return std::hash<std::string>()(boot.empty() ? host : boot);
}

// The machine of each host, on rank 0.
std::vector<std::uint64_t> machines_of_hosts(RankGroup& rank_group) {
    const std::vector<std::uint64_t> of_ranks =
        rank_group.gather_numbers(machine_of(rank_group.host_of(rank_group.rank())));
    std::vector<std::uint64_t> of_hosts;
    if (of_ranks.empty()) return of_hosts;
    for (const int rank : rank_group.first_ranks()) of_hosts.push_back(of_ranks[static_cast<std::size_t>(rank)]);
    return of_hosts;
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
    numa_ = numa_node_of(cpus, sysfs_);
    std::vector<Nic> nics;
#ifndef SMPI_H  // a simulated host does not have the interfaces of this machine
    nics = find_nics(sysfs_);
#endif
    std::string own_nic = gpu ? nic_near_gpu(sysfs_, nics, find_gpu(*gpu).pci) : "";
    if (binding) own_nic = binding->nic;
    if (own_nic.empty()) own_nic = nearest_nic(nics, numa_);
    texts_["rank_nic"] = own_nic;
    texts_["rank_cores"] = fold(cpus);
    for (const Nic& nic : nics)
        if (nic.name == own_nic) interfaces_ = nic.netdevs;
    if (binding) describe_binding(*binding);
    if (rank_group_.speaks_for_host()) nics_ = nics;
#ifndef SMPI_H  // simulated hosts have CPUs of their own
    count_machines(texts_["rank_cores"]);
#endif
}

// More ranks than CPUs that they may use, on the machine of any rank. Rank 0 keeps no more than it needs for the next
// step: there may be a million ranks.
void Facts::count_machines(const std::string& cores) {
    const std::vector<std::uint64_t> machines = machines_of_hosts(rank_group_);
    const GatheredTexts cores_of_ranks = rank_group_.gather(cores);
    std::vector<int> ranks(cores_of_ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto machine = [&](int rank) {
        return machines[static_cast<std::size_t>(rank_group_.rank_host()[static_cast<std::size_t>(rank)])];
    };
    std::sort(ranks.begin(), ranks.end(), [&](int a, int b) { return machine(a) < machine(b); });
    bool too_many = false;
    for (auto begin = ranks.begin(); begin != ranks.end(); ++machines_) {
        std::set<int> cpus;
        auto end = begin;
        for (; end != ranks.end() && machine(*end) == machine(*begin); ++end)
            for (const int cpu : unfold(cores_of_ranks[static_cast<std::size_t>(*end)])) cpus.insert(cpu);
        too_many = too_many || end - begin > static_cast<std::ptrdiff_t>(cpus.size());
        begin = end;
    }
    oversubscribed_ = rank_group_.maximum(too_many ? 1.0 : 0.0) > 0.0;
}

// The GPU of this rank. A rank that cannot use one has none here: the row that requires it reports the reason.
GpuProperties Facts::find_gpu(GpuApi api) {
    GpuProperties gpu;
    attempt([&] {
        const GpuRuntime& runtime = GpuRuntime::of(api);
        gpu = runtime.properties(gpu_of(runtime, index_on_host(rank_group_.rank_host(), rank_group_.rank())));
    });
    texts_["rank_gpu"] = gpu.pci.empty() ? "" : gpu_label(sysfs_, api, gpu.pci);
    texts_["rank_gpu_model"] = gpu.name;
    texts_["rank_gpu_pci"] = gpu.pci;
    return gpu;
}

void Facts::describe_binding(const Binding& binding) {
    std::map<std::string, std::vector<int>> ranks;
    const GatheredTexts notes = rank_group_.gather(binding.note);
    for (std::size_t rank = 0; rank < notes.size(); ++rank)
        if (!notes[rank].empty()) ranks[notes[rank]].push_back(static_cast<int>(rank));
    std::vector<std::string> texts;
    for (const auto& [note, with] : ranks)
        texts.push_back((with.size() == 1 ? "rank " : "ranks ") + fold(with) + " not bound to CPUs: " + note);
    binding_ = JsonObject().add("ranks_per_nic", binding.ranks_per_nic).add("notes", Json::list(texts)).json();
}

void Facts::describe(JsonObject& root) const {
    root.add("ranks", rank_group_.size()).add("environment", relevant_environment());
    if (machines_ > 0) root.add("machines", machines_);
    if (binding_.text() != "null") root.add("binding", binding_);
}

}  // namespace fablint
