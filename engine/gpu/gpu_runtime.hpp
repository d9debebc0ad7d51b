// The driver library of the GPUs of this host, CUDA's or HIP's, loaded at run time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "base/shared_library.hpp"

namespace fablint {

enum class GpuApi { cuda, hip };

struct GpuProperties {
    std::string name;  // NVIDIA H100 80GB HBM3
    std::string
        pci;  // address as in sysfs: 0000:3b:00.0. It is the same in every process, the index of a device is not
};

// The functions that the engine uses, in gpu_runtime.cpp.
struct GpuFunctions;

// A queue of copies on the device that was current when it was created. null: the default stream.
using GpuStream = void*;

// Between devices: memory of the current device, or memory of another process that is mapped.
enum class GpuCopy { to_device, to_host, between_devices };

// How the current device reaches the memory of another device of this host. Of NVIDIA's GPUs those with an NVLink
// between them have atomics, and those with PCIe only have none.
enum class GpuPeerAccess {
    not_visible,  // the driver does not show that device to this process: it tells nothing about it
    none,
    without_atomics,
    with_atomics
};

// Functions act on the device that use() made current in the calling thread. They throw an Error with the text of the
// driver: a usage error where there is no device or the driver is unsuitable, otherwise an incomplete error. Functions
// that release something do not throw: after an error the driver reports the same error to every further call.
class GpuRuntime {
  public:
    // The only object of that library; loads it at the first call. Throws a usage error where it is missing, too old,
    // or finds no device.
    static const GpuRuntime& of(GpuApi api);
    ~GpuRuntime();
    GpuRuntime(const GpuRuntime&) = delete;
    GpuRuntime& operator=(const GpuRuntime&) = delete;

    const char* name() const;  // cuda, hip
    int count() const { return count_; }
    GpuProperties properties(int device) const;
    void use(int device) const;                               // by the calling thread
    GpuProperties current() const;                            // the device that the calling thread uses
    GpuPeerAccess peer_access(const std::string& pci) const;  // of the current device to that one

    void* allocate(std::size_t bytes) const;  // memory of the device
    void release(void* data) const noexcept;
    void* allocate_host(std::size_t bytes) const;  // pinned memory of the host
    void release_host(void* data) const noexcept;

    // Returns when the copy is complete.
    void copy(GpuCopy kind, void* to, const void* from, std::size_t bytes) const;
    // Returns when the copy is queued. Memory of the host must be pinned.
    void queue_copy(GpuCopy kind, void* to, const void* from, std::size_t bytes, GpuStream stream) const;
    GpuStream create_stream() const;
    void synchronise(GpuStream stream) const;
    bool is_idle(GpuStream stream) const;  // is everything complete that was queued?
    void destroy(GpuStream stream) const noexcept;

    // Memory of a device for another process of this host: what that process needs in order to map it.
    struct SharedMemory {
        std::array<char, 64> handle;  // of the allocation that contains the memory
        std::size_t offset;           // of the memory in the allocation
    };
    SharedMemory share(const void* data) const;
    void* map(const SharedMemory& memory) const;  // the beginning of the allocation
    void unmap(void* allocation) const noexcept;

  private:
    explicit GpuRuntime(GpuApi api);
    GpuProperties described(int handle, const std::string& device) const;
    int current_handle() const;
    void check(int result, const std::string& action) const;
    std::string error_text(int result) const;

    GpuApi api_;
    SharedLibrary library_;
    std::unique_ptr<const GpuFunctions> call_;
    int count_ = 0;
};

}  // namespace fablint
