#include <cstdlib>
#include <cstring>

#include "base/errors.hpp"
#include "memories/memory.hpp"

namespace fablint {

namespace {

constexpr std::size_t alignment = 4096;  // a page

class HostMemory : public Memory {
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
    void write(void* data, const void* host, std::size_t bytes) override { copy(data, host, bytes); }
    void read(void* host, const void* data, std::size_t bytes) override { copy(host, data, bytes); }

  private:
    static void copy(void* to, const void* from, std::size_t bytes) {
        if (bytes > 0) std::memcpy(to, from, bytes);  // an empty message may have no host buffer at all
    }
};

}  // namespace

std::unique_ptr<Memory> make_host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace fablint
