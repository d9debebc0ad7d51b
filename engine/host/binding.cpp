#include "host/binding.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>

#include "base/mpi_c.hpp"  // SMPI_H
#include "base/sysfs.hpp"

namespace fablint {

namespace {

namespace fs = std::filesystem;

constexpr double equally_fast = 1.0;

// CPUs near a NIC; empty if sysfs does not list them.
std::string cpus_near(const fs::path& sysfs, const Nic& nic) {
    if (!nic.cpus.empty() || nic.numa < 0) return nic.cpus;
    return first_line(sysfs / "devices" / "system" / "node" / ("node" + std::to_string(nic.numa)) / "cpulist");
}

std::string counted(int number, const std::string& noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string names(const std::vector<Nic>& nics) {
    std::string text;
    for (const Nic& nic : nics) text += (text.empty() ? "" : " ") + nic.name;
    return text;
}

// Interfaces that are not used although they are up, with the reason, for the message.
std::string left_out(const std::vector<Nic>& nics, const std::vector<Nic>& used) {
    std::ostringstream text;
    for (const Nic& nic : nics) {
        const bool counts =
            std::any_of(used.begin(), used.end(), [&](const Nic& other) { return other.name == nic.name; });
        const bool same_kind = used.empty() || (nic.kind == used.front().kind && nic.physical == used.front().physical);
        if (counts || !same_kind) continue;
        text << (text.str().empty() ? "; not counted: " : ", ") << nic.name << " (";
        if (!nic.up()) {
            text << nic.state << ')';
        } else if (nic.kind == "roce" && nic.netdevs.empty()) {
            text << "without a network interface)";
        } else if (!nic.port_of.empty()) {
            text << "port of " << nic.port_of << ')';
        } else {
            text << nic.speed_mbps / 1000.0 << " Gb/s)";
        }
    }
    return text.str();
}

// The number of ranks with the same `key` as this rank, and the number of lower ranks among them.
std::pair<std::size_t, std::size_t> place_among_equals(RankGroup& rank_group, const std::string& key) {
    const std::vector<std::int32_t> codes = rank_group.gather(key).codes();
    std::vector<std::int32_t> ranks_of_key(codes.size(), 0);
    std::vector<std::int32_t> shares;  // of each rank: the lower ranks with its key, all ranks with its key
    for (const std::int32_t code : codes) {
        shares.push_back(ranks_of_key[static_cast<std::size_t>(code)]++);
        shares.push_back(0);
    }
    for (std::size_t rank = 0; rank < codes.size(); ++rank)
        shares[2 * rank + 1] = ranks_of_key[static_cast<std::size_t>(codes[rank])];
    const std::size_t bytes = 2 * sizeof(std::int32_t);
    const std::string own =
        rank_group.scatter(std::string(reinterpret_cast<const char*>(shares.data()), codes.size() * bytes), bytes);
    std::int32_t share[2];
    std::memcpy(share, own.data(), sizeof share);
    return {static_cast<std::size_t>(share[0]), static_cast<std::size_t>(share[1])};
}

// An empty string, or why the process could not be bound.
std::string pin_to(const std::vector<int>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) == 0) return "";
    return "binding to CPUs " + fold(cpus) + " failed: " + std::strerror(errno);
}

}  // namespace

int index_on_host(const std::vector<int>& rank_host, int rank) {
    return static_cast<int>(
        std::count(rank_host.begin(), rank_host.begin() + rank, rank_host[static_cast<std::size_t>(rank)]));
}

std::vector<int> allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cpus;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    return cpus;
}

std::string misfit(const std::string& host, int ranks, int ranks_per_nic, const std::vector<Nic>& nics) {
    const std::vector<Nic> used = fabric_nics(nics, equally_fast);
    const int number = static_cast<int>(used.size());
    if (ranks == number * ranks_per_nic) return "";
    const std::string what = "--ranks-per-nic " + std::to_string(ranks_per_nic) + ": " + host + " has ";
    if (used.empty()) return what + "no network interface that is up" + left_out(nics, used) + ": leave the option out";
    std::string advice = ": start " + counted(number * ranks_per_nic, "rank") + " on it";
    if (ranks % number == 0) advice += ", or give --ranks-per-nic " + std::to_string(ranks / number);
    return what + counted(ranks, "rank") + " for " + counted(number, "NIC") + " (" + names(used) +
           left_out(nics, used) + ")" + advice;
}

std::vector<Core> cores_near(const fs::path& sysfs, const Nic& nic, const std::vector<int>& allowed) {
    const std::string text = cpus_near(sysfs, nic);
    const std::vector<int> near = text.empty() ? allowed : unfold(text);
    std::set<int> open;
    for (const int cpu : near)
        if (std::count(allowed.begin(), allowed.end(), cpu) > 0) open.insert(cpu);
    std::vector<Core> cores;
    while (!open.empty()) {
        const int cpu = *open.begin();
        const fs::path topology =
            sysfs / "devices" / "system" / "cpu" / ("cpu" + std::to_string(cpu)) / "topology" / "thread_siblings_list";
        Core core = {cpu};
        for (const int sibling : unfold(first_line(topology)))
            if (sibling != cpu && open.count(sibling) > 0) core.push_back(sibling);
        for (const int taken : core) open.erase(taken);
        cores.push_back(core);
    }
    return cores;
}

std::vector<int> share_of(const std::vector<Core>& cores, std::size_t index, std::size_t of) {
    std::vector<int> cpus;
    for (std::size_t core = index * cores.size() / of; core < (index + 1) * cores.size() / of; ++core)
        cpus.insert(cpus.end(), cores[core].begin(), cores[core].end());
    std::sort(cpus.begin(), cpus.end());
    return cpus;
}

Binding bind_to_nics(RankGroup& rank_group, const std::string& sysfs, int ranks_per_nic) {
    std::vector<Nic> nics;
#ifndef SMPI_H  // a simulated host does not have the interfaces of this machine
    nics = find_nics(sysfs);
#endif
    const std::vector<int>& host = rank_group.rank_host();
    const int own_host = host[static_cast<std::size_t>(rank_group.rank())];
    const auto ranks = static_cast<int>(std::count(host.begin(), host.end(), own_host));
    const int local = index_on_host(host, rank_group.rank());
    const std::string wrong = misfit(rank_group.host_of(rank_group.rank()), ranks, ranks_per_nic, nics);
    rank_group.throw_if_any_failed(wrong.empty() ? std::nullopt : std::make_optional(usage_error(wrong)));

    const Nic nic = fabric_nics(nics, equally_fast)[static_cast<std::size_t>(local / ranks_per_nic)];
    const std::vector<int> allowed = allowed_cpus();
    const std::vector<Core> cores = cores_near(sysfs, nic, allowed);
    // Ranks with the same set of cores share it; a rank that the launcher has bound has a set of its own.
    const auto [index, of] = place_among_equals(
        rank_group, std::to_string(own_host) + ":" + (cores.empty() ? "" : fold(share_of(cores, 0, 1))));
    Binding binding{ranks_per_nic, nic.name, ""};
    if (cores.empty()) {
        binding.note = "none of the CPUs near " + nic.name + " (" + cpus_near(sysfs, nic) +
                       ") is among those that the launcher allows (" + fold(allowed) +
                       "): have it start the ranks unbound";
    } else if (of > cores.size()) {
        binding.note = "the launcher allows " + std::to_string(cores.size()) + " of the cores near " + nic.name +
                       ", too few for the " + std::to_string(of) + " ranks that would share them";
    } else {
        binding.note = pin_to(share_of(cores, index, of));
    }
    return binding;
}

}  // namespace fablint
