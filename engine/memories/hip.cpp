#include "memories/gpu_memory.hpp"

namespace fablint {

std::unique_ptr<Memory> make_hip_memory(const MemorySettings& settings) {
    return std::make_unique<GpuMemory>(GpuApi::hip, settings.index_on_host);
}

}  // namespace fablint
