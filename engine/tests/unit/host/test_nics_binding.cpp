// Which ranks fit which NICs, and which cores they get.
#include <doctest.h>

#include "base/sysfs.hpp"
#include "host/binding.hpp"
#include "tests/fake_sysfs.hpp"

using namespace fablint;

namespace {

std::vector<int> cpus(int from, int to) {
    std::vector<int> all;
    for (int cpu = from; cpu <= to; ++cpu) all.push_back(cpu);
    return all;
}

}  // namespace

TEST_CASE("the cores of a NIC are those of its node, both threads of each together") {
    const FakeSysfs sysfs("slingshot-2nics");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    const std::vector<Core> cores = cores_near(sysfs.root(), nics[1], cpus(0, 15));
    CHECK(cores == std::vector<Core>{{4, 12}, {5, 13}, {6, 14}, {7, 15}});
    CHECK(share_of(cores, 0, 2) == std::vector<int>{4, 5, 12, 13});
    CHECK(share_of(cores, 1, 2) == std::vector<int>{6, 7, 14, 15});
}

TEST_CASE("no share holds a CPU that was withheld") {
    const FakeSysfs sysfs("slingshot-2nics");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(cores_near(sysfs.root(), nics[0], {2, 9, 4, 12}) == std::vector<Core>{{2}, {9}});
    CHECK(cores_near(sysfs.root(), nics[0], cpus(4, 7)).empty());
}

TEST_CASE("shares are even, disjoint and complete") {
    std::vector<Core> cores;
    for (int cpu = 0; cpu < 10; ++cpu) cores.push_back({cpu});
    for (std::size_t of = 1; of <= cores.size(); ++of) {
        std::vector<int> all;
        for (std::size_t index = 0; index < of; ++index) {
            const std::vector<int> share = share_of(cores, index, of);
            CHECK(share.size() >= cores.size() / of);
            CHECK(share.size() <= cores.size() / of + 1);
            all.insert(all.end(), share.begin(), share.end());
        }
        CHECK(all == cpus(0, 9));
    }
}

TEST_CASE("without a list of its own a NIC has the CPUs of its NUMA node, and without a node all") {
    const FakeSysfs sysfs("slingshot-2nics");
    Nic nic;
    nic.numa = 1;
    CHECK(cores_near(sysfs.root(), nic, cpus(0, 15)).front() == Core{4, 12});
    nic.numa = -1;
    CHECK(cores_near(sysfs.root(), nic, {0, 1}) == std::vector<Core>{{0}, {1}});
}

TEST_CASE("the refusal of ranks that do not fit the NICs says how many fit") {
    FakeSysfs sysfs("slingshot-2nics");
    const std::vector<Nic> nics = find_nics(sysfs.root());
    CHECK(misfit("nid001", 8, 4, nics).empty());
    CHECK(misfit("nid001", 2, 1, nics).empty());
    CHECK(misfit("nid001", 6, 4, nics) ==
          "--ranks-per-nic 4: nid001 has 6 ranks for 2 NICs (cxi0 cxi1): start 8 ranks on it, or give "
          "--ranks-per-nic 3");
    CHECK(misfit("nid001", 1, 1, nics) ==
          "--ranks-per-nic 1: nid001 has 1 rank for 2 NICs (cxi0 cxi1): start 2 ranks on it");
    CHECK(misfit("nid001", 1, 1, {}) ==
          "--ranks-per-nic 1: nid001 has no network interface that is up: leave the option out");
}

TEST_CASE("a NIC that does not count is named with the reason") {
    FakeSysfs sysfs("infiniband-2rails");
    sysfs.set("class/infiniband/mlx5_1/ports/1/rate", "100 Gb/sec (1X NDR)");
    CHECK(misfit("n1", 2, 1, find_nics(sysfs.root())) ==
          "--ranks-per-nic 1: n1 has 2 ranks for 1 NIC (mlx5_0/1; not counted: mlx5_1/1 (100 Gb/s)): start 1 rank on "
          "it, or give --ranks-per-nic 2");
    for (const char* const device : {"mlx5_0", "mlx5_1"})
        sysfs.set("class/infiniband/" + std::string(device) + "/ports/1/state", "2: INIT");
    CHECK(misfit("n1", 2, 1, find_nics(sysfs.root())) ==
          "--ranks-per-nic 1: n1 has no network interface that is up; not counted: mlx5_0/1 (2: INIT), mlx5_1/1 (2: "
          "INIT): leave the option out");
}
