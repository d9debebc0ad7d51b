#include <fstream>
#include <sstream>

#include "base/errors.hpp"
#include "memories/mapped_memory.hpp"

namespace fablint {

namespace {

// A number of /proc/meminfo; 0 if it is not listed.
std::size_t memory_fact(const std::string& name) {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string label;
        std::size_t value = 0;
        if (words >> label >> value && label == name + ":") return value;
    }
    return 0;
}

std::size_t huge_page() {
    const std::size_t bytes = memory_fact("Hugepagesize") * 1024;
    if (bytes == 0) throw usage_error("--memory host-huge: the kernel of this host has no huge pages");
    return bytes;
}

// Huge pages of the default size, which the administrator has reserved (hugetlbfs). Transparent huge pages are not
// used: the kernel gives and takes them at any time, so that a measurement could not state which pages it has used.
class HugePages : public MappedMemory {
  public:
    HugePages() : MappedMemory(huge_page(), MAP_HUGETLB) {}

  private:
    [[noreturn]] void refuse(std::size_t bytes, int error) const override {
        const std::size_t pages = (bytes + huge_page() - 1) / huge_page();
        throw usage_error("--memory host-huge: no huge pages for a message buffer of " + std::to_string(bytes) +
                          " bytes: " + std::strerror(error) + ": it needs " + std::to_string(pages) +
                          (pages == 1 ? " page of " : " pages of ") + std::to_string(huge_page() / 1024) +
                          " KiB, and " + std::to_string(memory_fact("HugePages_Free")) +
                          " are free: reserve more (sysctl vm.nr_hugepages, as root), or choose smaller --sizes or "
                          "--memory host");
    }
};

}  // namespace

std::unique_ptr<Memory> make_host_huge_memory(const MemorySettings&) { return std::make_unique<HugePages>(); }

}  // namespace fablint
