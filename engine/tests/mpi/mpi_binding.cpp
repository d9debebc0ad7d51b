// Binding real ranks to the CPUs that they have, near NICs that do not exist.
#include <doctest.h>
#include <sched.h>

#include <algorithm>
#include <optional>

#include "base/sysfs.hpp"
#include "host/binding.hpp"
#include "host/facts.hpp"
#include "measure/instrument.hpp"
#include "ranks/mpi_control.hpp"
#include "tests/fake_sysfs.hpp"

using namespace fablint;

namespace {

// Gives the process its CPUs back, for the cases that follow.
class Affinity {
  public:
    Affinity() { sched_getaffinity(0, sizeof set_, &set_); }
    ~Affinity() { sched_setaffinity(0, sizeof set_, &set_); }
    Affinity(const Affinity&) = delete;
    Affinity& operator=(const Affinity&) = delete;

  private:
    cpu_set_t set_;
};

// A host with one Slingshot NIC near these CPUs.
void add_nic(FakeSysfs& sysfs, const std::string& near) {
    sysfs.set("class/cxi/cxi0/device/port/link", "up");
    sysfs.set("class/cxi/cxi0/device/local_cpulist", near);
    sysfs.set("class/cxi/cxi0/device/telemetry/hni_tx_ok_opt", "7@1.5");
}

std::string described(const Facts& facts) {
    JsonObject root;
    facts.describe(root);
    return root.json().text();
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("ranks are bound to disjoint shares of the cores near their NIC, and the facts say so") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const Affinity restored;
    const std::vector<int> before = allowed_cpus();
    FakeSysfs sysfs;
    add_nic(sysfs, fold(before));
    const Binding binding = bind_to_nics(rank_group, sysfs.root(), rank_group.size());
    const std::vector<int> after = allowed_cpus();
    CHECK(binding.nic == "cxi0");
    const bool all_equal = rank_group.minimum(before.front()) == rank_group.maximum(before.front()) &&
                           rank_group.minimum(static_cast<double>(before.size())) ==
                               rank_group.maximum(static_cast<double>(before.size()));
    const bool enough = static_cast<int>(before.size()) >= rank_group.size();
    if (all_equal && enough) {
        CHECK(binding.note.empty());
        CHECK(static_cast<int>(after.size()) <= static_cast<int>(before.size()) / rank_group.size() + 1);
    }
    if (all_equal && !enough) {
        CHECK(holds(binding.note, "too few for the " + std::to_string(rank_group.size()) + " ranks"));
        CHECK(after == before);
    }
    for (const int cpu : after) CHECK(std::count(before.begin(), before.end(), cpu) == 1);
    const Facts facts(rank_group, sysfs.root(), binding);
    if (rank_group.rank() == 0) {
        CHECK(holds(described(facts), "\"ranks_per_nic\":" + std::to_string(rank_group.size())));
        CHECK(facts.counters() == std::vector<NicCounters>{{"cxi0", {{"hni_tx_ok_opt", 7}}}});
    }
    CHECK(facts.texts().at("rank_nic") == "cxi0");
    CHECK(facts.texts().at("rank_cores") == fold(after));
}

TEST_CASE("a NIC near CPUs that are not allowed leaves the CPUs of the ranks unchanged, with a note") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    const Affinity restored;
    const std::vector<int> before = allowed_cpus();
    FakeSysfs sysfs;
    add_nic(sysfs, "1000-1003");
    const Binding binding = bind_to_nics(rank_group, sysfs.root(), rank_group.size());
    CHECK(allowed_cpus() == before);
    CHECK(binding.nic == "cxi0");
    CHECK(binding.note == "none of the CPUs near cxi0 (1000-1003) is among those that the launcher allows (" +
                              fold(before) + "): have it start the ranks unbound");
    const Facts facts(rank_group, sysfs.root(), binding);
    if (rank_group.rank() == 0) CHECK(holds(described(facts), "not bound to CPUs: none of the CPUs near cxi0"));
}

TEST_CASE("ranks that do not fit the NICs are refused on all ranks") {
    RankGroup rank_group(wall_clock(), make_mpi_control());
    FakeSysfs sysfs;
    add_nic(sysfs, "0");
    std::optional<Exit> status;
    try {
        bind_to_nics(rank_group, sysfs.root(), rank_group.size() + 1);
    } catch (const Error& error) {
        status = error.status();
    }
    CHECK(status == Exit::usage);
}
