// Memories: where the message buffers are.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fablint {

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
};

struct MemoryInfo {
    const char* name;
    const char* description;
    std::unique_ptr<Memory> (*make)();
};

// The table of memories in registry/transports.inc.
const std::vector<MemoryInfo>& memories();
const MemoryInfo& memory_named(const std::string& name);  // throws a usage error

// One file each in memories/.
#define MEMORY(name, description) std::unique_ptr<Memory> make_##name##_memory();
#include "registry/transports.inc"

}  // namespace fablint
