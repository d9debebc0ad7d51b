// Network interfaces, read from sysfs, and which of them carry the messages of a job.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace fablint {

struct Nic {
    std::string name;                  // cxi0, mlx5_0/1 (device/port), eth0
    std::string kind;                  // "cxi", "infiniband", "roce" (RDMA over Ethernet) or "ethernet"
    std::string state;                 // as the kernel says: up, down, 4: ACTIVE, ...
    double speed_mbps = 0.0;           // 0: unknown
    int mtu = 0;                       // of its network interface; 0: unknown
    int numa = -1;                     // -1: unknown
    bool physical = true;              // false: bridges, veth, VLANs, ... and virtual functions that belong to guests
    std::string port_of;               // the bond, or of a virtual one the bridge, that it is a port of
    std::vector<std::string> netdevs;  // its network interfaces: hsn0 of cxi0, ib0 of mlx5_0/1; eth0 itself
    std::filesystem::path device;      // where sysfs keeps the card; empty: there is none
    std::string cpus;                  // those near the card, folded; empty: unknown

    bool up() const;
};

// All interfaces of this host but the loopback, each once: a network interface that belongs to a Slingshot or RDMA
// device is one of its `netdevs` and no NIC of its own. Numbers in names sort as numbers. `sysfs` is /sys, or a copy of
// it in tests.
std::vector<Nic> find_nics(const std::filesystem::path& sysfs);

// The interfaces that a job's messages travel through: up, no port of another and not in another namespace; physical
// where any is; of the kind made for it where there is one (Slingshot and InfiniBand before RoCE before Ethernet); and
// at least `share` as fast as the fastest of these.
std::vector<Nic> fabric_nics(const std::vector<Nic>& nics, double share);

// Of the fabric's interfaces the nearest to a NUMA node: of that node if any, then the fastest. Links that trained at a
// quarter of their speed are still the fabric's. Empty when none is up.
std::string nearest_nic(const std::vector<Nic>& nics, int numa);

Json nics_json(const std::vector<Nic>& nics);

}  // namespace fablint
