// Network interfaces and their counters, on copies of the sysfs of several kinds of hosts.
#include <doctest.h>

#include <algorithm>

#include "base/sysfs.hpp"
#include "host/counters.hpp"
#include "host/nics.hpp"
#include "tests/fake_sysfs.hpp"
#if __has_include(<infiniband/verbs.h>)
#include "verbs/verbs_device.hpp"
#endif

using namespace fablint;

namespace {

std::vector<std::string> names(const std::vector<Nic>& nics) {
    std::vector<std::string> found;
    for (const Nic& nic : nics) found.push_back(nic.name);
    return found;
}

Nic named(const std::vector<Nic>& nics, const std::string& name) {
    const auto found = std::find_if(nics.begin(), nics.end(), [&](const Nic& nic) { return nic.name == name; });
    REQUIRE_MESSAGE(found != nics.end(), "no NIC ", name);
    return *found;
}

std::vector<std::string> fabric(const FakeSysfs& sysfs) { return names(fabric_nics(find_nics(sysfs.root()), 1.0)); }

// A physical Ethernet card.
void add_card(FakeSysfs& sysfs, const std::string& name, const std::string& speed, const std::string& numa) {
    const std::string card = "devices/pci0000:00/" + name + ".0";
    const std::string entry = card + "/net/" + name;
    sysfs.set(card + "/numa_node", numa);
    sysfs.set(entry + "/operstate", "up");
    sysfs.set(entry + "/speed", speed);
    sysfs.link(entry + "/device", "../../../" + name + ".0");
    sysfs.link("class/net/" + name, "../../" + entry);
}

void add_bond(FakeSysfs& sysfs, const std::string& speed, const std::vector<std::string>& ports) {
    std::string list;
    for (const std::string& port : ports) {
        list += (list.empty() ? "" : " ") + port;
        sysfs.link("devices/pci0000:00/" + port + ".0/net/" + port + "/master", "../../../../virtual/net/bond0");
    }
    sysfs.set("devices/virtual/net/bond0/operstate", "up");
    sysfs.set("devices/virtual/net/bond0/speed", speed);
    sysfs.set("devices/virtual/net/bond0/bonding/slaves", list);
    sysfs.link("class/net/bond0", "../../devices/virtual/net/bond0");
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("Slingshot: the NIC is cxi0, and hsn0 is its network interface") {
    const FakeSysfs sysfs("slingshot-2nics");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(names(nics) == Names{"cxi0", "cxi1", "eno1"});
    CHECK(nics[1].kind == "cxi");
    CHECK(nics[1].state == "up");
    CHECK(nics[1].speed_mbps == 200'000.0);
    CHECK(nics[1].mtu == 9000);
    CHECK(nics[1].numa == 1);
    CHECK(nics[1].cpus == "4-7,12-15");
    CHECK(nics[1].netdevs == Names{"hsn1"});
    CHECK(fabric(sysfs) == Names{"cxi0", "cxi1"});
    CHECK(nearest_nic(nics, 0) == "cxi0");
    CHECK(nearest_nic(nics, 1) == "cxi1");
    CHECK(nearest_nic(nics, -1) != "eno1");
}

TEST_CASE("Slingshot counters: value@time, the port's and its network interface's, and no histograms of the cache") {
    const FakeSysfs sysfs("slingshot-2nics");
    const auto counters = read_counters(sysfs.root(), find_nics(sysfs.root())[0]);
    CHECK(counters.at("hni_tx_ok_opt") == 115'762'638);
    CHECK(counters.at("hni_rx_ok_opt") == 115'940'582);
    CHECK(counters.at("hni_sts_rx_ok_octets") == 237'000'000'000);
    CHECK(counters.at("hni_pcs_corrected_cw") == 5000);
    CHECK(counters.at("hni_rx_paused_7") == 0);
    CHECK(counters.at("rx_errors") == 0);
    CHECK(counters.at("carrier_changes") == 2);
    CHECK(counters.count("atu_cache_miss_0") == 0);
    CHECK(counters.size() < 100);
}

TEST_CASE("Slingshot of the second generation says link and speed elsewhere") {
    FakeSysfs sysfs;
    sysfs.set("class/cxi/cxi0/device/port/0/link/state", "down");
    sysfs.set("class/cxi/cxi0/device/port/0/link/speed", "CK_400G");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    REQUIRE(nics.size() == 1);
    CHECK(nics[0].speed_mbps == 400'000.0);
    CHECK_FALSE(nics[0].up());
    sysfs.set("class/cxi/cxi0/device/port/0/link/state", "up");
    CHECK(find_nics(sysfs.root())[0].up());
}

TEST_CASE("Slingshot without links between the two: the interface ends in the fabric address of its NIC") {
    FakeSysfs sysfs;
    sysfs.set("class/cxi/cxi0/device/properties/nid", "0x8f3");
    sysfs.set("class/cxi/cxi0/device/properties/link", "1");
    for (const char* const name : {"hsn0", "hsn1"}) sysfs.set("class/net/" + std::string(name) + "/operstate", "up");
    sysfs.set("class/net/hsn0/address", "02:00:00:00:08:b3");
    sysfs.set("class/net/hsn1/address", "02:00:00:00:08:f3");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(names(nics) == Names{"cxi0", "hsn0"});
    CHECK(nics[0].netdevs == Names{"hsn1"});
    CHECK(nics[0].up());
}

TEST_CASE("InfiniBand: ports with counters of both kinds, and IPoIB is not a NIC of its own") {
    const FakeSysfs sysfs("infiniband-2rails");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(names(nics) == Names{"mlx5_0/1", "mlx5_1/1"});
    CHECK(nics[0].kind == "infiniband");
    CHECK(nics[0].speed_mbps == 400'000.0);
    CHECK(nics[0].mtu == 2044);
    CHECK(nics[0].netdevs == Names{"ib0"});
    CHECK(nearest_nic(nics, 1) == "mlx5_1/1");
    const auto counters = read_counters(sysfs.root(), nics[0]);
    CHECK(counters.at("port_xmit_data") == 123'456);
    CHECK(counters.at("symbol_error") == 0);
    CHECK(counters.at("local_ack_timeout_err") == 0);
    CHECK(counters.at("tx_dropped") == 0);
    CHECK(counters.count("lifespan") == 0);  // of hw_counters, and no counter
}

TEST_CASE("a port that waits for its subnet manager is not up; one lane of four is slow and still the fabric's") {
    FakeSysfs sysfs("infiniband-2rails");
    sysfs.set("class/infiniband/mlx5_1/ports/1/state", "2: INIT");
    CHECK(fabric(sysfs) == Names{"mlx5_0/1"});
    CHECK(nearest_nic(find_nics(sysfs.root()), 1) == "mlx5_0/1");
    sysfs.set("class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE");
    sysfs.set("class/infiniband/mlx5_1/ports/1/rate", "100 Gb/sec (1X NDR)");
    CHECK(fabric(sysfs) == Names{"mlx5_0/1"});
    CHECK(nearest_nic(find_nics(sysfs.root()), 1) == "mlx5_1/1");
}

TEST_CASE("RoCE: the kernel names the interface of a port, for a card with two ports as well") {
    FakeSysfs sysfs;
    add_card(sysfs, "ens1f0", "100000", "1");
    const std::string card = "devices/pci0000:00/ens1f0.0";
    sysfs.link(card + "/net/ens1f1/device", "../../../ens1f0.0");
    sysfs.set(card + "/net/ens1f1/operstate", "down");
    sysfs.set(card + "/net/ens1f1/dev_port", "1");
    sysfs.link("class/net/ens1f1", "../../" + card + "/net/ens1f1");
    for (const char* const port : {"1", "2"}) {
        const std::string folder = card + "/infiniband/mlx4_0/ports/" + port;
        sysfs.set(folder + "/link_layer", "Ethernet");
        sysfs.set(folder + "/state", "4: ACTIVE");
        sysfs.set(folder + "/rate", "100 Gb/sec (4X EDR)");
    }
    sysfs.link(card + "/infiniband/mlx4_0/device", "../../../ens1f0.0");
    sysfs.link("class/infiniband/mlx4_0", "../../" + card + "/infiniband/mlx4_0");
    sysfs.set("devices/virtual/infiniband/rxe0/parent", "eth9");  // Soft-RoCE has no card
    sysfs.set("devices/virtual/infiniband/rxe0/ports/1/link_layer", "Ethernet");
    sysfs.link("class/infiniband/rxe0", "../../devices/virtual/infiniband/rxe0");
    add_card(sysfs, "eth9", "10000", "0");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(names(nics) == Names{"mlx4_0/1", "mlx4_0/2", "rxe0/1"});
    CHECK(nics[0].kind == "roce");
    CHECK(nics[0].netdevs == Names{"ens1f0"});
    CHECK(nics[1].netdevs == Names{"ens1f1"});
    CHECK(nics[2].netdevs == Names{"eth9"});
    CHECK(nics[2].physical);
    CHECK(nics[2].numa == 0);
}

TEST_CASE("Soft-RoCE devices of other namespaces are seen, and are not this host's") {
    FakeSysfs sysfs;
    for (const char* const number : {"0", "1"}) {
        const std::string entry = "devices/virtual/infiniband/rxe" + std::string(number);
        sysfs.set(entry + "/parent", "eth" + std::string(number));
        sysfs.set(entry + "/ports/1/link_layer", "Ethernet");
        sysfs.set(entry + "/ports/1/state", "4: ACTIVE");
        sysfs.link("class/infiniband/rxe" + std::string(number), "../../" + entry);
    }
    sysfs.set("devices/virtual/net/eth1/operstate", "up");
    sysfs.link("class/net/eth1", "../../devices/virtual/net/eth1");
    CHECK(names(find_nics(sysfs.root())) == Names{"rxe0/1", "rxe1/1"});
    CHECK(fabric(sysfs) == Names{"rxe1/1"});
}

TEST_CASE("Ethernet, recorded: a virtio NIC, whose place is that of the device below it; unused interfaces are down") {
    const FakeSysfs sysfs("ethernet-vm");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(names(nics) == Names{"eth0", "ifb0"});
    CHECK(nics[0].kind == "ethernet");
    CHECK(nics[0].physical);
    CHECK_FALSE(nics[1].physical);
    CHECK(nics[0].speed_mbps == 0.0);  // sysfs says -1: unknown
    CHECK(nics[0].cpus == "0-1");
    CHECK(nearest_nic(nics, 0) == "eth0");
    const auto counters = read_counters(sysfs.root(), nics[0]);
    CHECK(counters.at("rx_bytes") > 0);
    CHECK(counters.at("carrier_changes") == 2);
}

TEST_CASE("a namespace, recorded: where all is virtual, that is what there is, but no port of a bridge") {
    FakeSysfs sysfs("namespace-veth");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(names(nics) == Names{"br0", "va", "vb"});
    CHECK(fabric(sysfs) == Names{"br0", "vb"});
    CHECK(named(nics, "va").port_of == "br0");
    CHECK_FALSE(nearest_nic(nics, 0).empty());
    add_card(sysfs, "eth0", "1000", "0");
    CHECK(fabric(sysfs) == Names{"eth0"});  // slower, and physical
    CHECK(nearest_nic(find_nics(sysfs.root()), -1) == "eth0");
}

TEST_CASE("a bond stands for its ports") {
    FakeSysfs sysfs;
    add_card(sysfs, "eth0", "1000", "0");
    for (const char* const port : {"eth1", "eth2"}) add_card(sysfs, port, "25000", "1");
    add_bond(sysfs, "50000", {"eth1", "eth2"});
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(named(nics, "bond0").physical);
    CHECK(named(nics, "bond0").numa == 1);
    CHECK(named(nics, "eth1").port_of == "bond0");
    CHECK(fabric(sysfs) == Names{"bond0"});
    CHECK(nearest_nic(nics, 0) == "bond0");
}

TEST_CASE("virtual functions on the host belong to its guests") {
    FakeSysfs sysfs;
    for (const char* const name : {"ens1", "ens1v0"}) add_card(sysfs, name, "100000", "0");
    sysfs.link("devices/pci0000:00/ens1v0.0/physfn", "../ens1.0");
    CHECK(fabric(sysfs) == Names{"ens1"});
}

TEST_CASE("management Ethernet is not the fabric, however near it is; of equals the node's own is nearest") {
    FakeSysfs sysfs("infiniband-2rails");
    add_card(sysfs, "eno1", "1000", "0");
    sysfs.set("class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
    CHECK(nearest_nic(find_nics(sysfs.root()), 0) == "mlx5_1/1");
}

TEST_CASE("numbers in names sort as numbers") {
    FakeSysfs sysfs;
    for (const char* const name : {"cxi10", "cxi2", "cxi1"})
        sysfs.set("class/cxi/" + std::string(name) + "/device/port/link", "up");
    CHECK(names(find_nics(sysfs.root())) == Names{"cxi1", "cxi2", "cxi10"});
}

TEST_CASE("text and all ones are not counters, and a host without sysfs has no NICs") {
    FakeSysfs sysfs;
    add_card(sysfs, "eth0", "1000", "0");
    sysfs.set("class/net/eth0/statistics/rx_errors", "3");
    sysfs.set("class/net/eth0/statistics/broken", "no number");
    sysfs.set("class/net/eth0/statistics/absent", "18446744073709551615");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(read_counters(sysfs.root(), nics[0]) == std::map<std::string, long long>{{"rx_errors", 3}});
    CHECK(find_nics(sysfs.root() / "nowhere").empty());
    CHECK(nearest_nic({}, 0).empty());
}

TEST_CASE("lists of CPUs are folded and unfolded") {
    for (const auto& [numbers, text] : std::map<std::vector<int>, std::string>{
             {{}, ""}, {{3}, "3"}, {{0, 1, 2, 8, 10, 11}, "0-2,8,10-11"}, {{0, 64}, "0,64"}}) {
        CHECK(fold(numbers) == text);
        CHECK(unfold(text) == numbers);
    }
}

#if __has_include(<infiniband/verbs.h>)

namespace {

Gid gid(int index, bool is_routable, const std::string& address) {
    Gid entry;
    entry.index = index;
    entry.is_routable = is_routable;
    entry.address = address;
    return entry;
}

int chosen(const std::vector<Gid>& gids) {
    const std::vector<LocalAddress> own = {{"eth0", "10.0.0.1", 24}, {"eth0", "fd00::1", 64}, {"eth0", "fe80::1", 64}};
    const Gid* preferred = preferred_gid(gids, own);
    return preferred != nullptr ? preferred->index : -1;
}

}  // namespace

TEST_CASE("the GID over Ethernet is an address of this host, of RoCE v2 and IPv4 if there is one") {
    const Gid v1 = gid(0, false, "10.0.0.1"), local = gid(1, true, "fe80::1"), other = gid(2, true, "10.0.0.2"),
              v6 = gid(3, true, "fd00::1"), v4 = gid(4, true, "10.0.0.1");
    CHECK(chosen({v1, local, other, v6, v4}) == 4);
    CHECK(chosen({v1, local, other, v6}) == 3);
    CHECK(chosen({v1, local, other}) == 1);
    CHECK(chosen({v1, other}) == 0);
    CHECK(chosen({other}) == -1);
}

#endif
