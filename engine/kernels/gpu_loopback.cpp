// Copies between a GPU and its host, or within the GPU: each rank with its own GPU, all ranks at once. No message is
// sent.
#include <cstring>

#include "base/errors.hpp"
#include "gpu/gpu_runtime.hpp"
#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// A window of copies in one stream, then one synchronisation. The memory of the host is pinned, and has the layout of
// the payload.
class GpuLoopback : public Kernel {
  public:
    GpuLoopback(GpuApi api, GpuCopy direction) : Kernel({}), api_(api), direction_(direction) {}
    ~GpuLoopback() override {
        if (stream_ != nullptr) gpu().destroy(stream_);
        if (pinned_ != nullptr) gpu().release_host(pinned_);
    }

    void arm(const Endpoint& end, bool, std::int64_t) override {
        if (stream_ == nullptr) stream_ = gpu().create_stream();
        const std::size_t bytes = end.payload.offset_of(end.window - 1) + end.bytes;
        if (bytes <= pinned_bytes_) return;
        if (pinned_ != nullptr) gpu().release_host(pinned_);
        pinned_ = nullptr;  // the next line may throw
        pinned_bytes_ = 0;
        pinned_ = static_cast<char*>(gpu().allocate_host(bytes));
        pinned_bytes_ = bytes;
    }
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        const GpuRuntime& runtime = gpu();
        for (std::int64_t i = 0; i < repetitions; ++i) {
            for (int slot = 0; slot < end.window; ++slot)
                runtime.queue_copy(direction_, target(end, slot), source(end, slot), end.bytes, stream_);
            runtime.synchronise(stream_);
        }
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override { lead(end, repetitions); }

    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        for (int slot = 0; slot < end.window; ++slot) {
            end.payload.fill(slot, end.rank, end.rank, first + slot);
            end.payload.poison(slot, leads);
            if (direction_ == GpuCopy::to_device)
                gpu().copy(GpuCopy::to_host, pinned(end, slot), end.payload.send_slot(slot), end.bytes);
            if (direction_ == GpuCopy::to_host) std::memset(pinned(end, slot), 0, end.bytes);
        }
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        for (int slot = 0; slot < end.window; ++slot) {
            if (direction_ == GpuCopy::to_host)
                gpu().copy(GpuCopy::to_device, end.payload.receive_slot(slot), pinned(end, slot), end.bytes);
            const auto offset = end.payload.damage(slot, end.rank, end.rank, first + slot);
            if (offset) damages.push_back({end.rank, end.rank, end.bytes, first + slot, *offset});
        }
    }

  private:
    // The library is loaded when the buffers are allocated, not when a row is read.
    const GpuRuntime& gpu() const { return GpuRuntime::of(api_); }
    char* pinned(const Endpoint& end, int slot) const { return pinned_ + end.payload.offset_of(slot); }
    const void* source(const Endpoint& end, int slot) const {
        return direction_ == GpuCopy::to_device ? pinned(end, slot) : end.payload.send_slot(slot);
    }
    void* target(const Endpoint& end, int slot) const {
        return direction_ == GpuCopy::to_host ? pinned(end, slot) : end.payload.receive_slot(slot);
    }

    const GpuApi api_;
    const GpuCopy direction_;
    GpuStream stream_ = nullptr;
    char* pinned_ = nullptr;
    std::size_t pinned_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_gpu_loopback(const KernelOptions& options) {
    const auto api = memory_named(options.memory).gpu;
    if (!api) throw usage_error("gpu_loopback copies memory of a GPU: use --memory cuda or --memory hip");
    return std::make_unique<GpuLoopback>(*api, options.copy == "to-host"     ? GpuCopy::to_host
                                               : options.copy == "to-device" ? GpuCopy::to_device
                                                                             : GpuCopy::between_devices);
}

}  // namespace fablint
