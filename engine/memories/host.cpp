#include <cstdlib>
#include <cstring>

#include "base/errors.hpp"
#include "memories/memory.hpp"

namespace fablint {

namespace {

constexpr std::size_t alignment = 4096;  // a page

class LocalMemory : public HostMemory {
  public:
    void* allocate(std::size_t bytes) override {
        void* data = nullptr;
        if (posix_memalign(&data, alignment, bytes) != 0)
            throw incomplete_error("no memory for a message buffer of " + std::to_string(bytes) +
                                   " bytes: choose smaller --sizes or a smaller --window");
        std::memset(data, 0, bytes);  // first touch: pages come from the NUMA node of this thread
        return data;
    }
    void release(void* data) override { std::free(data); }
};

}  // namespace

std::unique_ptr<Memory> make_host_memory(const MemorySettings&) { return std::make_unique<LocalMemory>(); }

}  // namespace fablint
