// A fake of the driver libraries of GPUs, for machines without a GPU: libcuda.so.1, or with -DFAKE_HIP libamdhip64.so.
// Written from the documented signatures. A wrong use of the driver ends the process with a line `fake libcuda: ...`:
//
// * a call before init, or in a thread without a current device
// * a pointer that is not an allocation of the expected kind, or a range that exceeds it. Addresses of device memory
// are
//   pages that nothing can read or write: host code that uses one is killed. The fake copies through a second mapping
// * a copy in a stream of another device, or of host memory that is not pinned, or a release while a copy is queued.
//   Copies are queued, and executed when their stream is synchronised: a missing synchronisation leaves old data
// * memory or streams that are not released at the end of the process
//
// FAKE_GPU_DEVICES: number of devices (default 2; 0: no device). FAKE_GPU_BYTES: memory of a device (default 1 GiB).
// FAKE_GPU_INIT: result of init, as 803 (driver and kernel module do not match).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "fake_stream.hpp"

#ifdef FAKE_HIP
#define NAME(cuda, hip) hip
#define LIBRARY "libamdhip64"
#else
#define NAME(cuda, hip) cuda
#define LIBRARY "libcuda"
#endif

namespace {

enum Result {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    no_device = 100,
    invalid_device = 101,
    not_ready = 600
};

constexpr std::size_t page = 4096;

struct Handle {
    int pid;
    int file;
    std::size_t bytes;
};

[[noreturn]] void misuse(const std::string& text) {
    std::fprintf(stderr, "fake " LIBRARY ": %s\n", text.c_str());
    std::abort();
}

long number(const char* variable, long otherwise) {
    const char* text = std::getenv(variable);
    return text != nullptr ? std::atol(text) : otherwise;
}

std::size_t pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

thread_local int current = NAME(-1, 0);

struct Driver {
    std::mutex mutex;
    bool is_ready = false;
    std::set<int> retained;  // devices whose context exists
    std::map<char*, Allocation> memory;
    std::map<char*, std::size_t> pinned;
    std::map<void*, Stream> streams = {{nullptr, {-1, {}}}};
    std::map<int, std::size_t> used;  // bytes of a device

    ~Driver() {
        const std::string left = std::to_string(memory.size()) + " allocations, " + std::to_string(pinned.size()) +
                                 " pinned blocks, " + std::to_string(streams.size() - 1) + " streams";
        if (left != "0 allocations, 0 pinned blocks, 0 streams")
            std::fprintf(stderr, "fake " LIBRARY ": not released at the end: %s\n", left.c_str());
    }

    void require_ready() const {
        if (!is_ready) misuse("a call before init");
    }
    void require_device() const {
        require_ready();
        if (current < 0) misuse("a call in a thread without a current device");
    }
    bool has(int device) const { return device >= 0 && device < number("FAKE_GPU_DEVICES", 2); }

    // The allocation that contains the range, and the address of the range in the mapping of the fake.
    char* view(const void* data, std::size_t bytes) {
        auto* const address = static_cast<char*>(const_cast<void*>(data));
        auto after = memory.upper_bound(address);
        if (after == memory.begin()) misuse("no device memory at this address");
        const auto& [base, allocation] = *std::prev(after);
        if (address + bytes > base + allocation.bytes) misuse("no device memory at this address, or a range beyond it");
        return allocation.view + (address - base);
    }
    void require_host(const void* data, std::size_t bytes, const void* stream) {
        auto* const address = static_cast<char*>(const_cast<void*>(data));
        auto after = memory.upper_bound(address);
        if (after != memory.begin() && address < std::prev(after)->first + std::prev(after)->second.bytes)
            misuse("device memory where host memory is expected");
        if (stream == nullptr) return;  // pageable memory is allowed: the driver copies it first
        auto next = pinned.upper_bound(address);
        if (next == pinned.begin() || address + bytes > std::prev(next)->first + std::prev(next)->second)
            misuse("a queued copy of host memory that is not pinned");
    }
    Stream& stream(void* handle) {
        const auto found = streams.find(handle);
        if (found == streams.end()) misuse("no such stream");
        if (handle != nullptr && found->second.device != current) misuse("a stream of another device");
        return found->second;
    }
    void require_idle(const char* begin, std::size_t bytes) {
        for (const auto& [handle, stream] : streams)
            for (const Task& copy : stream.queued)
                if ((copy.to >= begin && copy.to < begin + bytes) || (copy.from >= begin && copy.from < begin + bytes))
                    misuse("a release of memory while a copy is queued");
    }
    void* add(int file, std::size_t bytes, bool is_foreign) {
        void* const address = mmap(nullptr, pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void* const view = mmap(nullptr, pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (address == MAP_FAILED || view == MAP_FAILED) misuse("this machine has no memory for the fake");
        memory[static_cast<char*>(address)] = {bytes, static_cast<char*>(view), current, file, is_foreign};
        return address;
    }
    void remove(void* data, bool is_foreign) {
        const auto found = memory.find(static_cast<char*>(data));
        if (found == memory.end() || found->second.is_foreign != is_foreign)
            misuse("a release of what is not the beginning of an allocation");
        const Allocation allocation = found->second;
        require_idle(allocation.view, allocation.bytes);
        munmap(allocation.view, pages(allocation.bytes));
        munmap(data, pages(allocation.bytes));
        close(allocation.file);
        if (!is_foreign) used[allocation.device] -= allocation.bytes;
        memory.erase(found);
    }
};

Driver& driver() {
    static Driver only;
    return only;
}

struct Locked {
    Locked() : lock(driver().mutex) {}
    Driver* operator->() const { return &driver(); }
    std::lock_guard<std::mutex> lock;
};

const char* text_of(int result) {
    switch (result) {
        case invalid_value:
            return "invalid argument";
        case out_of_memory:
            return "out of memory";
        case no_device:
            return "no GPU is detected";
        case invalid_device:
            return "invalid device ordinal";
        case 803:
            return "system has unsupported display driver / driver combination";
        default:
            return "another error";
    }
}

}  // namespace

extern "C" {

using IpcHandle = struct { char bytes[64]; };

// For other fakes: the current device, where the bytes of device memory are, and work that a stream executes.
int fake_gpu_current() { return current; }
void fake_gpu_queue(void* stream, bool (*run)(void*), void* work) {
    Locked()->stream(stream).queued.push_back({nullptr, nullptr, 0, run, work});
}
void* fake_gpu_view(const void* data, std::size_t bytes) { return Locked()->view(data, bytes); }

int NAME(cuInit, hipInit)(unsigned flags) {
    if (flags != 0) return invalid_value;
    if (const long result = number("FAKE_GPU_INIT", 0); result != 0) return static_cast<int>(result);
    if (number("FAKE_GPU_DEVICES", 2) == 0) return no_device;
    Locked()->is_ready = true;
    return success;
}

int NAME(cuDeviceGetCount, hipGetDeviceCount)(int* count) {
    Locked()->require_ready();
    *count = static_cast<int>(number("FAKE_GPU_DEVICES", 2));
    return success;
}

int NAME(cuDeviceGet, hipDeviceGet)(int* device, int index) {
    const Locked driver;
    driver->require_ready();
    if (!driver->has(index)) return invalid_device;
    *device = index;
    return success;
}

int NAME(cuDeviceGetName, hipDeviceGetName)(char* name, int length, int) {
    Locked()->require_ready();
    std::snprintf(name, static_cast<std::size_t>(length), "fake GPU of " LIBRARY);
    return success;
}

int NAME(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char* address, int length, int device) {
    Locked()->require_ready();
    std::snprintf(address, static_cast<std::size_t>(length), "0000:%02X:00.0", 0x1a + 16 * device);
    return success;
}

#ifdef FAKE_HIP
int hipSetDevice(int device) {
    const Locked driver;
    driver->require_ready();
    if (!driver->has(device)) return invalid_device;
    current = device;
    return success;
}

const char* hipGetErrorString(int result) { return text_of(result); }
#else
int cuDevicePrimaryCtxRetain(void** context, int device) {
    const Locked driver;
    driver->require_ready();
    if (!driver->has(device)) return invalid_device;
    driver->retained.insert(device);
    *context = reinterpret_cast<void*>(static_cast<std::size_t>(device) + 1);
    return success;
}

int cuCtxSetCurrent(void* context) {
    const Locked driver;
    const int device = static_cast<int>(reinterpret_cast<std::size_t>(context)) - 1;
    if (driver->retained.count(device) == 0) misuse("a context that is not retained");
    current = device;
    return success;
}

int cuGetErrorString(int result, const char** text) {
    *text = text_of(result);
    return success;
}
#endif

int NAME(cuMemAlloc_v2, hipMalloc)(void** data, std::size_t bytes) {
    const Locked driver;
    driver->require_device();
    if (bytes == 0) return invalid_value;
    if (driver->used[current] + bytes > static_cast<std::size_t>(number("FAKE_GPU_BYTES", 1L << 30)))
        return out_of_memory;
    const int file = memfd_create("fake GPU memory", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(pages(bytes))) != 0) misuse("no file for the memory");
    driver->used[current] += bytes;
    *data = driver->add(file, bytes, false);
    return success;
}

int NAME(cuMemFree_v2, hipFree)(void* data) {
    const Locked driver;
    driver->require_device();
    driver->remove(data, false);
    return success;
}

int NAME(cuMemHostAlloc, hipHostMalloc)(void** data, std::size_t bytes, unsigned) {
    const Locked driver;
    driver->require_device();
    *data = std::aligned_alloc(page, pages(bytes));
    driver->pinned[static_cast<char*>(*data)] = bytes;
    return success;
}

int NAME(cuMemFreeHost, hipHostFree)(void* data) {
    const Locked driver;
    driver->require_device();
    const auto found = driver->pinned.find(static_cast<char*>(data));
    if (found == driver->pinned.end()) misuse("a release of host memory that is not pinned");
    driver->require_idle(found->first, found->second);
    driver->pinned.erase(found);
    std::free(data);
    return success;
}

int NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(void* to, const void* from, std::size_t bytes, void* stream) {
    const Locked driver;
    driver->require_device();
    driver->require_host(from, bytes, stream);
    driver->stream(stream).queued.push_back(
        {driver->view(to, bytes), static_cast<const char*>(from), bytes, nullptr, nullptr});
    return success;
}

int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void* to, const void* from, std::size_t bytes, void* stream) {
    const Locked driver;
    driver->require_device();
    driver->require_host(to, bytes, stream);
    driver->stream(stream).queued.push_back(
        {static_cast<char*>(to), driver->view(from, bytes), bytes, nullptr, nullptr});
    return success;
}

int NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(void* to, const void* from, std::size_t bytes, void* stream) {
    const Locked driver;
    driver->require_device();
    driver->stream(stream).queued.push_back(
        {driver->view(to, bytes), driver->view(from, bytes), bytes, nullptr, nullptr});
    return success;
}

int NAME(cuStreamCreate, hipStreamCreateWithFlags)(void** stream, unsigned flags) {
    const Locked driver;
    driver->require_device();
    if (flags > 1) return invalid_value;
    *stream = new char;
    driver->streams[*stream] = {current, {}};
    return success;
}

int NAME(cuStreamSynchronize, hipStreamSynchronize)(void* stream) {
    const Locked driver;
    driver->require_device();
    for (auto& queued = driver->stream(stream).queued; !queued.empty();)
        if (queued.front().advance()) queued.pop_front();
    return success;
}

int NAME(cuStreamQuery, hipStreamQuery)(void* stream) {
    const Locked driver;
    driver->require_device();
    auto& queued = driver->stream(stream).queued;
    if (queued.empty()) return success;
    if (queued.front().advance()) queued.pop_front();
    return not_ready;  // one task for each call: a caller that does not wait for the stream is detected
}

int NAME(cuStreamDestroy_v2, hipStreamDestroy)(void* stream) {
    const Locked driver;
    driver->require_device();
    if (stream == nullptr || !driver->stream(stream).queued.empty()) misuse("the end of a stream in use");
    driver->streams.erase(stream);
    delete static_cast<char*>(stream);
    return success;
}

int NAME(cuMemGetAddressRange_v2, hipMemGetAddressRange)(void** base, std::size_t* bytes, const void* data) {
    const Locked driver;
    driver->require_device();
    driver->view(data, 0);
    const auto& [begin, allocation] =
        *std::prev(driver->memory.upper_bound(static_cast<char*>(const_cast<void*>(data))));
    *base = begin;
    *bytes = allocation.bytes;
    return success;
}

int NAME(cuIpcGetMemHandle, hipIpcGetMemHandle)(IpcHandle* handle, void* data) {
    const Locked driver;
    driver->require_device();
    const auto found = driver->memory.find(static_cast<char*>(data));
    if (found == driver->memory.end() || found->second.is_foreign) misuse("a handle of what is not an allocation");
    const Handle content{getpid(), found->second.file, found->second.bytes};
    *handle = {};
    std::memcpy(handle->bytes, &content, sizeof content);
    return success;
}

int NAME(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle)(void** data, IpcHandle handle, unsigned flags) {
    const Locked driver;
    driver->require_device();
    Handle content{};
    std::memcpy(&content, handle.bytes, sizeof content);
    if (flags != 1) return invalid_value;
    if (content.pid == getpid()) misuse("a handle of this process");
    const std::string name = "/proc/" + std::to_string(content.pid) + "/fd/" + std::to_string(content.file);
    const int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return invalid_value;
    *data = driver->add(file, content.bytes, true);
    return success;
}

int NAME(cuIpcCloseMemHandle, hipIpcCloseMemHandle)(void* data) {
    const Locked driver;
    driver->require_device();
    driver->remove(data, true);
    return success;
}

}  // extern "C"
