#include "host/nics.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "base/sysfs.hpp"

namespace fablint {

namespace {

namespace fs = std::filesystem;

// A network interface, which may belong to a NIC or be one.
struct Netdev {
    Nic nic;
    long port = 0;  // number of the port of the card, from 0
    unsigned long address = 0;
    std::vector<std::string> bond_ports;
    bool taken = false;
};

fs::path real(const fs::path& path) {
    std::error_code ignored;
    const fs::path target = fs::canonical(path, ignored);
    return ignored ? fs::path() : target;
}

bool is_virtual(const fs::path& entry) { return real(entry).string().find("/devices/virtual/") != std::string::npos; }

// The card of an entry of class/*: the target of its `device` link, which also contains the entry (CARD/net/eth0).
fs::path card_of(const fs::path& entry) {
    const fs::path direct = real(entry / "device");
    if (!direct.empty() || is_virtual(entry)) return direct;
    const fs::path card = real(entry).parent_path().parent_path();
    return fs::exists(card / "numa_node") ? card : fs::path();
}

// A virtual function has a `physfn` on the host; inside the guest that owns it there is none.
bool is_physical(const fs::path& entry, const fs::path& card) {
    return !is_virtual(entry) && (card.empty() || !fs::exists(card / "physfn"));
}

// PCI location of a card. Devices of virtio and other buses have the location of the PCI device below them.
void locate(Nic& nic) {
    for (const fs::path& card : {nic.device, nic.device.parent_path()}) {
        if (nic.numa >= 0 || !nic.cpus.empty() || card.empty()) return;
        nic.numa = static_cast<int>(integer(card / "numa_node", -1));
        nic.cpus = first_line(card / "local_cpulist");
    }
}

std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end;
    }
    return parts;
}

// `02:00:00:00:08:b3` as a number; 0 if the text is not an address.
unsigned long hardware_address(const fs::path& entry) {
    std::string digits = first_line(entry / "address");
    digits.erase(std::remove(digits.begin(), digits.end(), ':'), digits.end());
    return digits.size() == 12 ? std::strtoul(digits.c_str(), nullptr, 16) : 0;
}

Netdev netdev(const fs::path& entry) {
    Netdev netdev;
    Nic& nic = netdev.nic;
    nic.name = entry.filename().string();
    nic.kind = "ethernet";
    nic.state = first_line(entry / "operstate");
    nic.speed_mbps = static_cast<double>(std::max(0L, integer(entry / "speed", 0)));
    nic.mtu = static_cast<int>(integer(entry / "mtu", 0));
    nic.device = card_of(entry);
    nic.physical = is_physical(entry, nic.device);
    locate(nic);
    nic.netdevs = {nic.name};
    const fs::path master = real(entry / "master");
    if (!master.empty() && (!nic.physical || fs::exists(master / "bonding"))) nic.port_of = master.filename().string();
    netdev.port = integer(entry / "dev_port", 0);
    netdev.address = hardware_address(entry);
    netdev.bond_ports = words(first_line(entry / "bonding" / "slaves"));
    return netdev;
}

// A bond is physical if its ports are, and has their location.
void describe_bonds(std::vector<Netdev>& netdevs) {
    for (Netdev& bond : netdevs) {
        std::vector<const Nic*> ports;
        for (const Netdev& port : netdevs)
            if (std::count(bond.bond_ports.begin(), bond.bond_ports.end(), port.nic.name) > 0)
                ports.push_back(&port.nic);
        if (ports.empty()) continue;
        bond.nic.physical = std::any_of(ports.begin(), ports.end(), [](const Nic* port) { return port->physical; });
        const bool together =
            std::all_of(ports.begin(), ports.end(), [&](const Nic* port) { return port->numa == ports.front()->numa; });
        bond.nic.numa = together ? ports.front()->numa : -1;
        if (together) bond.nic.cpus = ports.front()->cpus;
    }
}

std::vector<Netdev> find_netdevs(const fs::path& sysfs) {
    std::vector<Netdev> netdevs;
    for (const fs::path& entry : entries(sysfs / "class" / "net"))
        if (entry.filename() != "lo" && fs::exists(entry / "operstate")) netdevs.push_back(netdev(entry));
    describe_bonds(netdevs);
    return netdevs;
}

// Moves the network interfaces for which `belongs` is true to the NIC.
template <typename Belongs>
void take_netdevs(Nic& nic, std::vector<Netdev>& netdevs, Belongs belongs) {
    for (Netdev& candidate : netdevs) {
        if (candidate.taken || !belongs(candidate)) continue;
        candidate.taken = true;
        if (nic.netdevs.empty()) nic.mtu = candidate.nic.mtu;
        nic.netdevs.push_back(candidate.nic.name);
        nic.physical = nic.physical || candidate.nic.physical;
        if (nic.device.empty()) nic.device = candidate.nic.device;
    }
    locate(nic);
}

Nic on_card(const fs::path& entry) {
    Nic nic;
    nic.device = card_of(entry);
    nic.physical = is_physical(entry, nic.device);
    return nic;
}

bool same_card(const Nic& nic, const Netdev& candidate) {
    return !nic.device.empty() && candidate.nic.device == nic.device;
}

// Slingshot. The first generation keeps the port's state in port/, the second in port/0/link/.
Nic cassini(const fs::path& entry, std::vector<Netdev>& netdevs) {
    Nic nic = on_card(entry);
    const fs::path port = entry / "device" / "port";
    const fs::path properties = entry / "device" / "properties";
    nic.name = entry.filename().string();
    nic.kind = "cxi";
    for (const fs::path& file : {port / "link", port / "0" / "link" / "state"})
        if (nic.state.empty()) nic.state = first_line(file);
    if (nic.state.empty()) nic.state = integer(properties / "link", 0) == 1 ? "up" : "down";
    nic.speed_mbps = static_cast<double>(std::max(0L, integer(properties / "speed", 0)));
    for (const fs::path& file : {port / "speed", port / "0" / "link" / "speed"}) {  // BS_200G, CK_400G
        const std::string text = first_line(file);
        const std::size_t digits = text.find('_');
        if (nic.speed_mbps == 0.0 && digits != std::string::npos)
            nic.speed_mbps = std::strtod(text.c_str() + digits + 1, nullptr) * 1000.0;
    }
    // If sysfs does not link the two, the interface's address ends with the fabric address (algorithmic MAC addresses).
    constexpr unsigned long address_bits = 0xfffff;
    const unsigned long nid = std::strtoul(first_line(properties / "nid").c_str(), nullptr, 0);
    take_netdevs(nic, netdevs, [&](const Netdev& candidate) {
        const bool by_address = candidate.nic.device.empty() && nid != 0 && (candidate.address & address_bits) == nid;
        return same_card(nic, candidate) || by_address;
    });
    return nic;
}

Nic rdma(const fs::path& entry, const fs::path& port, std::size_t ports, std::vector<Netdev>& netdevs) {
    Nic nic = on_card(entry);
    nic.name = entry.filename().string() + "/" + port.filename().string();
    nic.kind = first_line(port / "link_layer") == "Ethernet" ? "roce" : "infiniband";
    nic.state = first_line(port / "state");
    nic.speed_mbps = std::strtod(first_line(port / "rate").c_str(), nullptr) * 1000.0;  // "200 Gb/sec (4X HDR)"
    std::vector<std::string> named = {first_line(entry / "parent")};                    // of Soft-RoCE
    for (const fs::path& file : entries(port / "gid_attrs" / "ndevs")) named.push_back(first_line(file));
    const long number = std::strtol(port.filename().c_str(), nullptr, 10);
    take_netdevs(nic, netdevs, [&](const Netdev& candidate) {
        const bool own_port = ports == 1 || candidate.port == number - 1;
        return std::count(named.begin(), named.end(), candidate.nic.name) > 0 ||
               (same_card(nic, candidate) && own_port);
    });
    return nic;
}

// Runs of digits compare as numbers: mlx5_10 comes after mlx5_9.
bool before(const std::string& a, const std::string& b) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        if (digit(a[i]) && digit(b[j])) {
            char* end_a = nullptr;
            char* end_b = nullptr;
            const unsigned long long x = std::strtoull(a.c_str() + i, &end_a, 10);
            const unsigned long long y = std::strtoull(b.c_str() + j, &end_b, 10);
            if (x != y) return x < y;
            i = static_cast<std::size_t>(end_a - a.c_str());
            j = static_cast<std::size_t>(end_b - b.c_str());
        } else {
            if (a[i] != b[j]) return a[i] < b[j];
            ++i;
            ++j;
        }
    }
    return a.size() - i < b.size() - j;
}

// RDMA over Ethernet uses the network interface: the NIC is in the namespace of the interface.
bool usable(const Nic& nic) { return nic.up() && nic.port_of.empty() && !(nic.kind == "roce" && nic.netdevs.empty()); }

int made_for_messages(const Nic& nic) {
    static const std::map<std::string, int> order = {{"ethernet", 0}, {"roce", 1}, {"infiniband", 2}, {"cxi", 2}};
    return order.at(nic.kind);
}

}  // namespace

bool Nic::up() const {
    // Virtual interfaces report "unknown"; InfiniBand ports "4: ACTIVE".
    return state == "up" || state == "unknown" || state.find("ACTIVE") != std::string::npos;
}

std::vector<Nic> find_nics(const fs::path& sysfs) {
    std::vector<Netdev> netdevs = find_netdevs(sysfs);
    std::vector<Nic> nics;
    for (const fs::path& entry : entries(sysfs / "class" / "cxi")) nics.push_back(cassini(entry, netdevs));
    for (const fs::path& entry : entries(sysfs / "class" / "infiniband")) {
        const std::vector<fs::path> ports = entries(entry / "ports");
        for (const fs::path& port : ports) nics.push_back(rdma(entry, port, ports.size(), netdevs));
    }
    for (const Netdev& other : netdevs)
        if (!other.taken) nics.push_back(other.nic);
    std::sort(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) { return before(a.name, b.name); });
    return nics;
}

std::vector<Nic> fabric_nics(const std::vector<Nic>& nics, double share) {
    const auto merit = [](const Nic& nic) { return std::make_tuple(nic.physical, made_for_messages(nic)); };
    std::vector<Nic> selected;
    double fastest = 0.0;
    for (const Nic& nic : nics) {
        if (!usable(nic) || (!selected.empty() && merit(nic) < merit(selected.front()))) continue;
        if (!selected.empty() && merit(nic) > merit(selected.front())) {
            selected.clear();
            fastest = 0.0;
        }
        selected.push_back(nic);
        fastest = std::max(fastest, nic.speed_mbps);
    }
    selected.erase(std::remove_if(selected.begin(), selected.end(),
                                  [&](const Nic& nic) { return nic.speed_mbps < share * fastest; }),
                   selected.end());
    return selected;
}

std::string nearest_nic(const std::vector<Nic>& nics, int numa) {
    const std::vector<Nic> candidates = fabric_nics(nics, least_share);
    const auto merit = [numa](const Nic& nic) {
        return std::make_tuple(numa >= 0 && nic.numa == numa, nic.speed_mbps);
    };
    const auto best = std::max_element(candidates.begin(), candidates.end(),
                                       [&](const Nic& a, const Nic& b) { return merit(a) < merit(b); });
    return best == candidates.end() ? "" : best->name;
}

Json nics_json(const std::vector<Nic>& nics) {
    std::vector<Json> list;
    for (const Nic& nic : nics)
        list.push_back(JsonObject()
                           .add("name", nic.name)
                           .add("kind", nic.kind)
                           .add("state", nic.state)
                           .add("speed_mbps", nic.speed_mbps)
                           .add("mtu", nic.mtu)
                           .add("numa", nic.numa)
                           .add("physical", nic.physical)
                           .add("port_of", nic.port_of)
                           .add("netdevs", Json::list(nic.netdevs))
                           .json());
    return Json::list(list);
}

}  // namespace fablint
