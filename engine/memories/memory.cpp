#include "memories/memory.hpp"

#include <cstring>

#include "base/table.hpp"
#include "gpu/gpu_runtime.hpp"

namespace fablint {

const std::vector<MemoryInfo>& memories() {
    static constexpr auto cuda = GpuApi::cuda;
    static constexpr auto hip = GpuApi::hip;
    static const std::vector<MemoryInfo> table = {
#define MEMORY(identifier, ...) ROW_OF_TABLE(MemoryInfo, make = make_##identifier##_memory, __VA_ARGS__),
#include "registry/transports.inc"
    };
    return table;
}

const MemoryInfo& memory_named(const std::string& text) {
    const std::size_t colon = text.find(':');
    const MemoryInfo& info = row_named(memories(), text.substr(0, colon), "memory");
    const bool has_parameter = colon != std::string::npos;
    if (has_parameter && *info.parameter == '\0')
        throw usage_error("--memory " + text + ": " + info.name + " has no parameter");
    if (!has_parameter && *info.parameter != '\0')
        throw usage_error("--memory " + text + ": write " + info.name + ":" + info.parameter);
    return info;
}

std::unique_ptr<Memory> make_memory(const std::string& text, MemorySettings settings) {
    const std::size_t colon = text.find(':');
    if (colon != std::string::npos) settings.parameter = text.substr(colon + 1);
    return memory_named(text).make(settings);
}

// An empty message may have no host buffer at all.
void HostMemory::write(void* data, const void* host, std::size_t bytes) {
    if (bytes > 0) std::memcpy(data, host, bytes);
}

void HostMemory::read(void* host, const void* data, std::size_t bytes) {
    if (bytes > 0) std::memcpy(host, data, bytes);
}

}  // namespace fablint
