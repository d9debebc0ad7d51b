#include "host/gpus.hpp"

#include <algorithm>
#include <tuple>

#include "base/sysfs.hpp"

namespace fablint {

namespace {

namespace fs = std::filesystem;

fs::path card_at(const fs::path& sysfs, const std::string& pci) { return sysfs / "bus" / "pci" / "devices" / pci; }

// Display controllers (0x03) and processing accelerators (0x12) of the vendor, in the order of their addresses.
std::vector<std::string> cards_of(const fs::path& sysfs, GpuApi api) {
    const std::string vendor = api == GpuApi::cuda ? "0x10de" : "0x1002";
    std::vector<std::string> cards;
    for (const fs::path& card : entries(sysfs / "bus" / "pci" / "devices")) {
        const std::string type = first_line(card / "class").substr(0, 4);
        if (first_line(card / "vendor") == vendor && (type == "0x03" || type == "0x12"))
            cards.push_back(card.filename().string());
    }
    return cards;
}

// Number of folders that two devices have in common in sysfs: the PCI root, and each bridge above both.
long bridges_in_common(const fs::path& one, const fs::path& other) {
    return std::distance(one.begin(), std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first);
}

}  // namespace

std::string gpu_label(const fs::path& sysfs, GpuApi api, const std::string& pci) {
    const std::vector<std::string> cards = cards_of(sysfs, api);
    const auto found = std::find(cards.begin(), cards.end(), pci);
    return found == cards.end() ? pci : "gpu" + std::to_string(found - cards.begin());
}

std::string nic_near_gpu(const fs::path& sysfs, const std::vector<Nic>& nics, const std::string& pci) {
    std::error_code ignored;
    const fs::path card = fs::canonical(card_at(sysfs, pci), ignored);
    if (card.empty()) return "";
    const long numa = integer(card / "numa_node", -1);
    const auto merit = [&](const Nic& nic) {
        return std::make_tuple(nic.device.empty() ? 0 : bridges_in_common(card, nic.device),
                               numa >= 0 && nic.numa == numa, nic.speed_mbps);
    };
    const std::vector<Nic> candidates = fabric_nics(nics, least_share);
    const auto best = std::max_element(candidates.begin(), candidates.end(),
                                       [&](const Nic& a, const Nic& b) { return merit(a) < merit(b); });
    return best == candidates.end() ? "" : best->name;
}

}  // namespace fablint
