#include "nics.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <tuple>

namespace fablint {

namespace {

namespace fs = std::filesystem;

// First line of a sysfs file; empty when it cannot be read (many attributes fail on interfaces that are down).
std::string first_line(const fs::path& file) {
    std::ifstream stream(file);
    std::string line;
    std::getline(stream, line);
    return line;
}

int integer(const fs::path& file, int otherwise) {
    const std::string line = first_line(file);
    char* end = nullptr;
    const long value = std::strtol(line.c_str(), &end, 10);
    return end == line.c_str() ? otherwise : static_cast<int>(value);
}

std::vector<fs::path> entries(const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code ignored;  // a folder that does not exist has no entries
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
}

Nic ethernet(const fs::path& folder) {
    Nic nic;
    nic.name = folder.filename().string();
    nic.kind = "ethernet";
    nic.state = first_line(folder / "operstate");
    nic.speed_mbps = std::max(0, integer(folder / "speed", 0));
    nic.mtu = integer(folder / "mtu", 0);
    nic.numa = integer(folder / "device" / "numa_node", -1);
    return nic;
}

Nic infiniband(const fs::path& device, const fs::path& port) {
    Nic nic;
    nic.name = device.filename().string() + "/" + port.filename().string();
    nic.kind = "infiniband";
    nic.state = first_line(port / "state");
    nic.speed_mbps = std::strtod(first_line(port / "rate").c_str(), nullptr) * 1000.0;  // "200 Gb/sec (4X HDR)"
    nic.numa = integer(device / "device" / "numa_node", -1);
    return nic;
}

fs::path counter_folder(const fs::path& sysfs, const Nic& nic) {
    if (nic.kind == "ethernet") return sysfs / "class" / "net" / nic.name / "statistics";
    const std::size_t slash = nic.name.find('/');
    return sysfs / "class" / "infiniband" / nic.name.substr(0, slash) / "ports" / nic.name.substr(slash + 1) /
           "counters";
}

}  // namespace

bool Nic::up() const {
    // Virtual interfaces report "unknown"; InfiniBand ports "4: ACTIVE".
    return state == "up" || state == "unknown" || state.find("ACTIVE") != std::string::npos;
}

std::vector<Nic> find_nics(const fs::path& sysfs) {
    std::vector<Nic> nics;
    for (const fs::path& folder : entries(sysfs / "class" / "net"))
        if (folder.filename() != "lo" && fs::exists(folder / "operstate")) nics.push_back(ethernet(folder));
    for (const fs::path& device : entries(sysfs / "class" / "infiniband"))
        for (const fs::path& port : entries(device / "ports")) nics.push_back(infiniband(device, port));
    return nics;
}

std::string nearest_nic(const std::vector<Nic>& nics, int numa) {
    const auto merit = [numa](const Nic& nic) {
        return std::make_tuple(nic.up(), numa >= 0 && nic.numa == numa, nic.speed_mbps);
    };
    const auto best =
        std::max_element(nics.begin(), nics.end(), [&](const Nic& a, const Nic& b) { return merit(a) < merit(b); });
    return best == nics.end() || !best->up() ? "" : best->name;
}

std::map<std::string, long long> read_counters(const fs::path& sysfs, const Nic& nic) {
    std::map<std::string, long long> counters;
    for (const fs::path& file : entries(counter_folder(sysfs, nic))) {
        const std::string line = first_line(file);
        char* end = nullptr;
        const long long value = std::strtoll(line.c_str(), &end, 10);
        if (end != line.c_str()) counters[file.filename().string()] = value;
    }
    return counters;
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
                           .json());
    return Json::list(list);
}

Json counters_json(const fs::path& sysfs, const std::vector<Nic>& nics) {
    JsonObject object;
    for (const Nic& nic : nics) {
        JsonObject counters;
        for (const auto& [name, value] : read_counters(sysfs, nic))
            counters.add(name, static_cast<std::int64_t>(value));
        object.add(nic.name, counters.json());
    }
    return object.json();
}

}  // namespace fablint
