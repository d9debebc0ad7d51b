#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/errors.hpp"
#include "base/sysfs.hpp"
#include "memories/mapped_memory.hpp"

namespace fablint {

namespace {

constexpr int bind_policy = 2;  // MPOL_BIND of linux/mempolicy.h: pages come from these nodes only

// The node; throws a usage error unless the host has it, with memory.
int node_of(const MemorySettings& settings) {
    const std::string folder = settings.sysfs + "/devices/system/node/";
    std::string nodes = first_line(folder + "has_memory");
    if (nodes.empty()) nodes = first_line(folder + "online");
    for (const int node : unfold(nodes))
        if (settings.parameter == std::to_string(node)) return node;
    throw usage_error("--memory host-numa:" + settings.parameter + ": " +
                      (nodes.empty() ? "the kernel of this host lists no NUMA nodes: choose --memory host"
                                     : "the NUMA nodes with memory of this host are " + nodes));
}

class NumaNode : public MappedMemory {
  public:
    explicit NumaNode(int node) : MappedMemory(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), 0), node_(node) {}

  private:
    [[noreturn]] void refuse(std::size_t bytes, int error) const override {
        throw incomplete_error("no memory for a message buffer of " + std::to_string(bytes) +
                               " bytes: " + std::strerror(error) + ": choose smaller --sizes or a smaller --window");
    }
    void place(void* data, std::size_t length) const override {
        constexpr int bits = sizeof(unsigned long) * CHAR_BIT;
        std::vector<unsigned long> nodes(static_cast<std::size_t>(node_ / bits) + 1);
        nodes.back() = 1UL << (node_ % bits);
        const auto most = nodes.size() * bits + 1;  // the kernel reads one bit less
        if (syscall(SYS_mbind, data, length, bind_policy, nodes.data(), most, 0) != 0)
            throw usage_error("--memory host-numa:" + std::to_string(node_) + ": the kernel does not bind memory to " +
                              "the node: " + std::strerror(errno) +
                              ": the job or container may not use it, or may not choose nodes");
    }

    int node_;
};

}  // namespace

std::unique_ptr<Memory> make_host_numa_memory(const MemorySettings& settings) {
    return std::make_unique<NumaNode>(node_of(settings));
}

}  // namespace fablint
