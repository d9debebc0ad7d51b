// Memory of the GPU of this rank.
#pragma once

#include <map>

#include "gpu/gpu_runtime.hpp"
#include "memories/memory.hpp"

namespace fablint {

// The GPU of the rank with that index on its host: the ranks of a host take the GPUs by turns.
int gpu_of(const GpuRuntime& runtime, int index_on_host);

class GpuMemory : public Memory {
  public:
    // Makes the GPU current in the calling thread, which alone may use this memory.
    GpuMemory(GpuApi api, int index_on_host);
    void* allocate(std::size_t bytes) override;
    void release(void* data) override;
    void write(void* data, const void* host, std::size_t bytes) override;
    void read(void* host, const void* data, std::size_t bytes) override;
    bool is_on_gpu(const void* address) const override;

  private:
    const GpuRuntime& runtime_;
    std::map<const char*, std::size_t> allocations_;  // bytes by beginning
};

}  // namespace fablint
