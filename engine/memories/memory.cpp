#include "memories/memory.hpp"

#include "base/table.hpp"

namespace fablint {

const std::vector<MemoryInfo>& memories() {
    static const std::vector<MemoryInfo> table = {
        {"host", "main memory of the NUMA node that the rank runs on", make_host_memory},
    };
    return table;
}

const MemoryInfo& memory_named(const std::string& name) { return row_named(memories(), name, "memory"); }

}  // namespace fablint
