// A fake of the driver libraries of GPUs, for machines without a GPU: libcuda.so.1, or with -DFAKE_HIP libamdhip64.so.
// Written from the documented signatures. A wrong use of the driver ends the process with a line `fake libcuda: ...`:
//
// * a call before init, or in a thread without a current device
// * a pointer that is not an allocation of the expected kind, or a range that exceeds it. Addresses of device memory
// are
//   pages that nothing can read or write: host code that uses one is killed. The fake copies through a second mapping
// * a copy in a stream of another device, or of host memory that is not pinned, or a release while a copy is queued.
//   Copies are queued, and executed when their stream is synchronised: a missing synchronisation leaves old data
// * memory or streams that are not released at the end of the process, or memory that is released while another process
//   has mapped it
//
// FAKE_GPU_DEVICES: number of devices (default 2; 0: no device). FAKE_GPU_BYTES: memory of a device (default 1 GiB).
// FAKE_GPU_INIT: result of init, as 803 (driver and kernel module do not match). FAKE_GPU_NO_ACCESS=0-1,
// FAKE_GPU_NO_ATOMICS=0-1: pairs of devices whose link lacks it. FAKE_GPU_RATE: bytes/s of a copy (default: as fast as
// the host copies), FAKE_GPU_SLOW: a device whose copies have a quarter of it.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "fake_gpus_state.hpp"

namespace {

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
        case no_peer_access:
            return "peer access is not supported between these two devices";
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
    Locked()->stream(stream).queued.push_back({nullptr, nullptr, 0, 0.0, run, work});
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

int NAME(cuCtxGetDevice, hipGetDevice)(int* device) {
    Locked()->require_device();
    *device = current;
    return success;
}

int NAME(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(int* can, int device, int peer) {
    const Locked driver;
    driver->require_ready();
    if (!driver->has(device) || !driver->has(peer)) return invalid_device;
    *can = device != peer && !lists_pair("FAKE_GPU_NO_ACCESS", device, peer) ? 1 : 0;
    return success;
}

int NAME(cuDeviceGetP2PAttribute, hipDeviceGetP2PAttribute)(int* value, int property, int device, int peer) {
    const Locked driver;
    driver->require_ready();
    if (!driver->has(device) || !driver->has(peer)) return invalid_device;
    if (device == peer) return invalid_value;
    if (property != NAME(3, 2)) misuse("a property of two devices other than native atomics");
    *value = lists_pair("FAKE_GPU_NO_ATOMICS", device, peer) ? 0 : 1;
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
    if (file < 0 || ftruncate(file, static_cast<off_t>(pages(bytes) + page)) != 0) misuse("no file for the memory");
    driver->used[current] += bytes;
    *data = driver->add(file, bytes, current, false);
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
        {driver->view(to, bytes), static_cast<const char*>(from), bytes, duration(bytes, current, current)});
    return success;
}

int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void* to, const void* from, std::size_t bytes, void* stream) {
    const Locked driver;
    driver->require_device();
    driver->require_host(to, bytes, stream);
    driver->stream(stream).queued.push_back(
        {static_cast<char*>(to), driver->view(from, bytes), bytes, duration(bytes, current, current)});
    return success;
}

int NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(void* to, const void* from, std::size_t bytes, void* stream) {
    const Locked driver;
    driver->require_device();
    driver->stream(stream).queued.push_back({driver->view(to, bytes), driver->view(from, bytes), bytes,
                                             duration(bytes, driver->device_of(to), driver->device_of(from))});
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
    for (auto& queued = driver->stream(stream).queued; !queued.empty();) {
        if (queued.front().advance()) {
            queued.pop_front();
        } else {
            sched_yield();
        }
    }
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
    const Handle content{getpid(), found->second.file, found->second.device, found->second.bytes};
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
    if (lists_pair("FAKE_GPU_NO_ACCESS", current, content.device)) return no_peer_access;
    const std::string name = "/proc/" + std::to_string(content.pid) + "/fd/" + std::to_string(content.file);
    const int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return invalid_value;
    *data = driver->add(file, content.bytes, content.device, true);
    return success;
}

int NAME(cuIpcCloseMemHandle, hipIpcCloseMemHandle)(void* data) {
    const Locked driver;
    driver->require_device();
    driver->remove(data, true);
    return success;
}

}  // extern "C"
