#include "memories/gpu_memory.hpp"

#include <iterator>

namespace fablint {

int gpu_of(const GpuRuntime& runtime, int index_on_host) { return index_on_host % runtime.count(); }

GpuMemory::GpuMemory(GpuApi api, int index_on_host) : runtime_(GpuRuntime::of(api)) {
    runtime_.use(gpu_of(runtime_, index_on_host));
}

void* GpuMemory::allocate(std::size_t bytes) {
    void* const data = runtime_.allocate(bytes);
    allocations_[static_cast<const char*>(data)] = bytes;
    return data;
}

void GpuMemory::release(void* data) {
    allocations_.erase(static_cast<const char*>(data));
    runtime_.release(data);
}

void GpuMemory::write(void* data, const void* host, std::size_t bytes) {
    runtime_.copy(GpuCopy::to_device, data, host, bytes);
}

void GpuMemory::read(void* host, const void* data, std::size_t bytes) {
    runtime_.copy(GpuCopy::to_host, host, data, bytes);
}

bool GpuMemory::is_on_gpu(const void* address) const {
    const auto* const byte = static_cast<const char*>(address);
    const auto after = allocations_.upper_bound(byte);
    if (after == allocations_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return byte < begin + bytes;
}

}  // namespace fablint
