#include "memories/memory.hpp"

#include "base/table.hpp"

namespace fablint {

const std::vector<MemoryInfo>& memories() {
    static const std::vector<MemoryInfo> table = {
#define MEMORY(name, description) {#name, description, make_##name##_memory},
#include "registry/transports.inc"
    };
    return table;
}

const MemoryInfo& memory_named(const std::string& name) { return row_named(memories(), name, "memory"); }

}  // namespace fablint
