// Network interfaces, from sysfs, and the selection of those that carry the messages of a job.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace fablint {

struct Nic {
    std::string name;                  // cxi0, mlx5_0/1 (device/port), eth0
    std::string kind;                  // "cxi", "infiniband", "roce" (RDMA over Ethernet) or "ethernet"
    std::string state;                 // as reported by the kernel: up, down, 4: ACTIVE, ...
    double speed_mbps = 0.0;           // 0: unknown
    int mtu = 0;                       // of its network interface; 0: unknown
    int numa = -1;                     // -1: unknown
    bool physical = true;              // false: bridges, veth, VLANs, ... and virtual functions that belong to guests
    std::string port_of;               // the bond (of a virtual interface: the bridge) that the interface is a port of
    std::vector<std::string> netdevs;  // its network interfaces: hsn0 of cxi0, ib0 of mlx5_0/1; eth0 itself
    std::filesystem::path device;      // folder of the card in sysfs; empty: unknown
    std::string cpus;                  // CPUs near the card, as 0-3,8; empty: unknown

    bool up() const;
};

// All interfaces of this host except the loopback, each once: a network interface of a Slingshot or RDMA device is one
// of its `netdevs`, not a NIC of its own. Numbers in names sort as numbers. `sysfs` is /sys, or a copy of it in tests.
std::vector<Nic> find_nics(const std::filesystem::path& sysfs);

// The interfaces that carry the messages of a job: up, not a port of another interface, not in another namespace;
// physical if any is; of the best kind (Slingshot and InfiniBand before RoCE before Ethernet); and with at least
// `share` of the highest speed among these.
std::vector<Nic> fabric_nics(const std::vector<Nic>& nics, double share);

// Share of the highest speed from which an interface counts as one near a rank: links that trained at a quarter of
// their speed still count.
inline constexpr double least_share = 0.25;

// The interface of the fabric nearest to a NUMA node: on that node if any, then the fastest. Empty if no interface is
// up.
std::string nearest_nic(const std::vector<Nic>& nics, int numa);

Json nics_json(const std::vector<Nic>& nics);

}  // namespace fablint
