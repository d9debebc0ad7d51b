#include "gpu/gpu_runtime.hpp"

#include <algorithm>
#include <cctype>

#include "base/errors.hpp"

namespace fablint {

namespace {

// Handles of a library are pointers; a result of 0 is success, and these results are the same in both libraries.
constexpr int out_of_memory = 2;
constexpr int no_device = 100;
constexpr int not_ready = 600;

constexpr unsigned non_blocking_stream = 1;
constexpr unsigned portable_host_memory = 1;
constexpr unsigned access_peer_when_needed = 1;
// Properties of a pair of devices: CU_DEVICE_P2P_ATTRIBUTE_..., hipDevP2PAttr...
constexpr int cuda_native_atomics = 3;
constexpr int hip_native_atomics = 2;

const char* const cuda_advice =
    "install the driver of the GPUs, or start the engine on a host with NVIDIA GPUs, or choose another --memory or "
    "--transport";
const char* const hip_advice =
    "load the ROCm module, or start the engine on a host with AMD GPUs, or choose another --memory or --transport";

}  // namespace

// Declarations of this project, from the documentation of the CUDA driver API and of HIP: the engine is built without a
// toolkit. The functions of a line have the same arguments; CUdeviceptr, an integer of 64 bits, is passed as a pointer.
#define GPU_FUNCTIONS(FUNCTION)                                                                                    \
    FUNCTION(init, "cuInit", "hipInit", (unsigned flags))                                                          \
    FUNCTION(device_count, "cuDeviceGetCount", "hipGetDeviceCount", (int* count))                                  \
    FUNCTION(device_get, "cuDeviceGet", "hipDeviceGet", (int* device, int index))                                  \
    FUNCTION(device_name, "cuDeviceGetName", "hipDeviceGetName", (char* name, int length, int device))             \
    FUNCTION(device_pci, "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId", (char* address, int length, int device))   \
    FUNCTION(current_device, "cuCtxGetDevice", "hipGetDevice", (int* device))                                      \
    FUNCTION(can_access, "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer", (int* can, int device, int peer))      \
    FUNCTION(peer_property, "cuDeviceGetP2PAttribute", "hipDeviceGetP2PAttribute",                                 \
             (int* value, int property, int device, int peer))                                                     \
    FUNCTION(allocate, "cuMemAlloc_v2", "hipMalloc", (void** data, std::size_t bytes))                             \
    FUNCTION(release, "cuMemFree_v2", "hipFree", (void* data))                                                     \
    FUNCTION(allocate_host, "cuMemHostAlloc", "hipHostMalloc", (void** data, std::size_t bytes, unsigned flags))   \
    FUNCTION(release_host, "cuMemFreeHost", "hipHostFree", (void* data))                                           \
    FUNCTION(copy_to_device, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync",                                         \
             (void* to, const void* from, std::size_t bytes, GpuStream stream))                                    \
    FUNCTION(copy_to_host, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync",                                           \
             (void* to, const void* from, std::size_t bytes, GpuStream stream))                                    \
    FUNCTION(copy_between_devices, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync",                                   \
             (void* to, const void* from, std::size_t bytes, GpuStream stream))                                    \
    FUNCTION(create_stream, "cuStreamCreate", "hipStreamCreateWithFlags", (GpuStream * stream, unsigned flags))    \
    FUNCTION(synchronise, "cuStreamSynchronize", "hipStreamSynchronize", (GpuStream stream))                       \
    FUNCTION(query, "cuStreamQuery", "hipStreamQuery", (GpuStream stream))                                         \
    FUNCTION(destroy_stream, "cuStreamDestroy_v2", "hipStreamDestroy", (GpuStream stream))                         \
    FUNCTION(address_range, "cuMemGetAddressRange_v2", "hipMemGetAddressRange",                                    \
             (void** base, std::size_t* bytes, const void* data))                                                  \
    FUNCTION(share, "cuIpcGetMemHandle", "hipIpcGetMemHandle", (IpcHandle * handle, void* data))                   \
    FUNCTION(map, "cuIpcOpenMemHandle_v2", "hipIpcOpenMemHandle", (void** data, IpcHandle handle, unsigned flags)) \
    FUNCTION(unmap, "cuIpcCloseMemHandle", "hipIpcCloseMemHandle", (void* data))

struct GpuFunctions {
    using IpcHandle = struct { std::array<char, 64> bytes; };

    GpuFunctions(const SharedLibrary& library, GpuApi api) {
        const bool cuda = api == GpuApi::cuda;
#define FUNCTION(member, cuda_name, hip_name, arguments) library.load(member, cuda ? cuda_name : hip_name);
        GPU_FUNCTIONS(FUNCTION)
#undef FUNCTION
        if (cuda) {
            library.load(retain_context, "cuDevicePrimaryCtxRetain");
            library.load(set_context, "cuCtxSetCurrent");
            library.load(cuda_error, "cuGetErrorString");
        } else {
            library.load(set_device, "hipSetDevice");
            library.load(hip_error, "hipGetErrorString");
        }
    }

#define FUNCTION(member, cuda_name, hip_name, arguments) int(*member) arguments;
    GPU_FUNCTIONS(FUNCTION)
#undef FUNCTION
    // Of CUDA:
    int (*retain_context)(void** context, int device) = nullptr;
    int (*set_context)(void* context) = nullptr;
    int (*cuda_error)(int result, const char** text) = nullptr;
    // Of HIP:
    int (*set_device)(int device) = nullptr;
    const char* (*hip_error)(int result) = nullptr;
};

const GpuRuntime& GpuRuntime::of(GpuApi api) {
    if (api == GpuApi::hip) {
        static const GpuRuntime hip(GpuApi::hip);
        return hip;
    }
    static const GpuRuntime cuda(GpuApi::cuda);
    return cuda;
}

GpuRuntime::GpuRuntime(GpuApi api)
    : api_(api),
      library_(api == GpuApi::cuda ? "libcuda.so.1" : "libamdhip64.so", api == GpuApi::cuda ? cuda_advice : hip_advice),
      call_(std::make_unique<const GpuFunctions>(library_, api)) {
    int result = call_->init(0);
    if (result == 0) result = call_->device_count(&count_);
    if (result == 0 && count_ == 0) result = no_device;
    if (result != 0) throw usage_error(std::string(name()) + ": no GPU can be used: " + error_text(result));
}

GpuRuntime::~GpuRuntime() = default;

const char* GpuRuntime::name() const { return api_ == GpuApi::cuda ? "cuda" : "hip"; }

GpuProperties GpuRuntime::properties(int device) const {
    int handle = 0;
    check(call_->device_get(&handle, device), "device " + std::to_string(device));
    return described(handle, "device " + std::to_string(device));
}

GpuProperties GpuRuntime::current() const { return described(current_handle(), "the current device"); }

int GpuRuntime::current_handle() const {
    int handle = 0;
    check(call_->current_device(&handle), "current device");
    return handle;
}

GpuProperties GpuRuntime::described(int handle, const std::string& device) const {
    std::array<char, 256> text{};
    constexpr int length = text.size();
    GpuProperties properties;
    check(call_->device_name(text.data(), length, handle), "name of " + device);
    properties.name = text.data();
    check(call_->device_pci(text.data(), length, handle), "PCI address of " + device);
    properties.pci = text.data();
    std::transform(properties.pci.begin(), properties.pci.end(), properties.pci.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return properties;
}

GpuPeerAccess GpuRuntime::peer_access(const std::string& pci) const {
    int index = 0, peer = 0, can_access = 0, has_atomics = 0;
    while (index < count_ && properties(index).pci != pci) ++index;
    if (index == count_) return GpuPeerAccess::not_visible;
    check(call_->device_get(&peer, index), "device " + pci);
    const int own = current_handle();
    check(call_->can_access(&can_access, own, peer), "access to the memory of device " + pci);
    if (can_access == 0) return GpuPeerAccess::none;
    const int property = api_ == GpuApi::cuda ? cuda_native_atomics : hip_native_atomics;
    check(call_->peer_property(&has_atomics, property, own, peer), "atomics of the link to device " + pci);
    return has_atomics != 0 ? GpuPeerAccess::with_atomics : GpuPeerAccess::without_atomics;
}

// The primary context of a device is retained until the process ends: MPI and other libraries use it as well.
void GpuRuntime::use(int device) const {
    const std::string action = "use of device " + std::to_string(device);
    if (api_ == GpuApi::hip) {
        check(call_->set_device(device), action);
        return;
    }
    int handle = 0;
    void* context = nullptr;
    check(call_->device_get(&handle, device), action);
    check(call_->retain_context(&context, handle), action);
    check(call_->set_context(context), action);
}

void* GpuRuntime::allocate(std::size_t bytes) const {
    void* data = nullptr;
    check(call_->allocate(&data, bytes), "GPU memory of " + std::to_string(bytes) + " bytes");
    return data;
}

void GpuRuntime::release(void* data) const noexcept { call_->release(data); }

void* GpuRuntime::allocate_host(std::size_t bytes) const {
    void* data = nullptr;
    check(call_->allocate_host(&data, bytes, portable_host_memory),
          "pinned host memory of " + std::to_string(bytes) + " bytes");
    return data;
}

void GpuRuntime::release_host(void* data) const noexcept { call_->release_host(data); }

void GpuRuntime::copy(GpuCopy kind, void* to, const void* from, std::size_t bytes) const {
    if (bytes == 0) return;
    queue_copy(kind, to, from, bytes, nullptr);
    synchronise(nullptr);
}

void GpuRuntime::queue_copy(GpuCopy kind, void* to, const void* from, std::size_t bytes, GpuStream stream) const {
    if (bytes == 0) return;
    const auto function = kind == GpuCopy::to_device ? call_->copy_to_device
                          : kind == GpuCopy::to_host ? call_->copy_to_host
                                                     : call_->copy_between_devices;
    check(function(to, from, bytes, stream), "copy");
}

GpuStream GpuRuntime::create_stream() const {
    GpuStream stream = nullptr;
    check(call_->create_stream(&stream, non_blocking_stream), "stream");
    return stream;
}

void GpuRuntime::synchronise(GpuStream stream) const { check(call_->synchronise(stream), "wait for a stream"); }

bool GpuRuntime::is_idle(GpuStream stream) const {
    const int result = call_->query(stream);
    if (result == not_ready) return false;
    check(result, "state of a stream");
    return true;
}

void GpuRuntime::destroy(GpuStream stream) const noexcept { call_->destroy_stream(stream); }

GpuRuntime::SharedMemory GpuRuntime::share(const void* data) const {
    void* base = nullptr;
    std::size_t bytes = 0;
    check(call_->address_range(&base, &bytes, data), "address of GPU memory");
    GpuFunctions::IpcHandle handle{};
    check(call_->share(&handle, base), "handle of GPU memory for another process");
    return {handle.bytes, static_cast<std::size_t>(static_cast<const char*>(data) - static_cast<const char*>(base))};
}

void* GpuRuntime::map(const SharedMemory& memory) const {
    void* data = nullptr;
    check(call_->map(&data, {memory.handle}, access_peer_when_needed), "GPU memory of another process");
    return data;
}

void GpuRuntime::unmap(void* allocation) const noexcept { call_->unmap(allocation); }

void GpuRuntime::check(int result, const std::string& action) const {
    if (result == 0) return;
    const std::string what = std::string(name()) + ": " + action + ": " + error_text(result);
    throw incomplete_error(result == out_of_memory ? what + ": choose smaller --sizes or a smaller --window" : what);
}

std::string GpuRuntime::error_text(int result) const {
    const char* text = nullptr;
    if (api_ == GpuApi::hip) text = call_->hip_error(result);
    if (api_ == GpuApi::cuda && call_->cuda_error(result, &text) != 0) text = nullptr;
    return std::string(text != nullptr ? text : "unknown error") + " (" + std::to_string(result) + ")";
}

}  // namespace fablint
