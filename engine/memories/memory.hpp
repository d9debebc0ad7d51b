// Memories: where the message buffers are.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fablint {

enum class GpuApi;

// `count` message buffers; `stride` is the distance between the beginnings of neighbours, in bytes.
template <typename Data>
struct Buffers {
    Data* first;
    std::size_t stride;
    int count;
};

// Payloads are written and checked through copies in host memory.
class Memory {
  public:
    virtual ~Memory() = default;
    virtual void* allocate(std::size_t bytes) = 0;  // page-aligned and touched by the caller's thread
    virtual void release(void* data) = 0;
    virtual void write(void* data, const void* host, std::size_t bytes) = 0;
    virtual void read(void* host, const void* data, std::size_t bytes) = 0;
    // Is that address in memory of a GPU that this object has allocated? The host must not read or write it.
    virtual bool is_on_gpu(const void* /*address*/) const { return false; }
};

// A block of a memory, released at the end of the object; the memory must exist until then.
struct ReleaseMemory {
    Memory* memory;
    void operator()(void* data) const { memory->release(data); }
};
using OwnedMemory = std::unique_ptr<void, ReleaseMemory>;

// Memory that the host reads and writes.
class HostMemory : public Memory {
  public:
    void write(void* data, const void* host, std::size_t bytes) override;
    void read(void* host, const void* data, std::size_t bytes) override;
};

// What a memory may need.
struct MemorySettings {
    std::string parameter;  // what follows the colon of the name
    int index_on_host = 0;  // of this rank among those of its host
    std::string sysfs = "/sys";
};

// A row of registry/transports.inc, which documents the fields.
struct MemoryInfo {
    const char* name = "";
    const char* parameter = "";
    std::optional<GpuApi> gpu = std::nullopt;
    const char* description = "";
    std::unique_ptr<Memory> (*make)(const MemorySettings& settings) = nullptr;
};

// The table of memories in registry/transports.inc.
const std::vector<MemoryInfo>& memories();
// `text`: the name and, if the memory has one, its parameter. Both throw a usage error.
const MemoryInfo& memory_named(const std::string& text);
std::unique_ptr<Memory> make_memory(const std::string& text, MemorySettings settings = {});

// One file each in memories/.
#define MEMORY(identifier, ...) std::unique_ptr<Memory> make_##identifier##_memory(const MemorySettings& settings);
#include "registry/transports.inc"

}  // namespace fablint
