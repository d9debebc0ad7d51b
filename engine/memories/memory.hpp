// Where message buffers live.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fablint {

// `count` message buffers, `stride` bytes from the beginning of one to that of the next.
template <typename Data>
struct Buffers {
    Data* first;
    std::size_t stride;
    int count;
};

// Copies go through the host so that payloads can be filled and checked wherever they live.
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
    const char* what;
    std::unique_ptr<Memory> (*make)();
};

// The table of memories, in the order in which --list prints them.
const std::vector<MemoryInfo>& memories();
const MemoryInfo& memory_named(const std::string& name);  // throws a usage error

// The rows of the table, one file each in memories/.
std::unique_ptr<Memory> make_host_memory();

}  // namespace fablint
