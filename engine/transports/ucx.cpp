#include "libraries/ucp_worker.hpp"

#if __has_include(<ucp/api/ucp.h>)

#include "base/errors.hpp"
#include "gpu/gpu_runtime.hpp"

namespace fablint {

namespace {

// Tagged messages of UCP. The tag is the rank of the sender.
class UcxTransport : public Transport, Rma {
  public:
    explicit UcxTransport(const TransportSettings& settings)
        : tag_(static_cast<ucp_tag_t>(settings.rank)),
          required_(settings.required),
          has_gpu_buffers_(settings.gpu.has_value()),
          worker_(settings) {}

    std::string address() const override { return worker_.address(); }
    void connect(int peer, const std::string& address) override { worker_.connect(peer, address); }
    std::string devices() const override { return worker_.devices(); }

    bool takes_gpu_memory(GpuApi api) const override {
        return worker_.has_memory_type(api == GpuApi::cuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_ROCM);
    }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        const ucp_ep_h endpoint = worker_.endpoint(peer);
        const char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            worker_.keep(peer, ucp().tag_send_nbx(endpoint, data, bytes, tag_, &parameters_));
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            worker_.keep(peer, receive_request(peer, data, bytes));
    }
    void complete() override { worker_.complete(); }
    bool has_active_target() const override { return true; }
    bool serve() override { return worker_.progress(); }
    void finish() override { worker_.flush(); }

    void send(int peer, const void* data, std::size_t bytes) override {
        worker_.finish(peer, ucp().tag_send_nbx(worker_.endpoint(peer), data, bytes, tag_, &parameters_));
    }
    void receive(int peer, void* data, std::size_t bytes) override {
        worker_.finish(peer, receive_request(peer, data, bytes));
    }

    Rma* rma() override { return this; }
    std::unique_ptr<Window> expose(Memory& memory, const WindowRequest& request) override {
        if (has_gpu_buffers_ && (request.win == "allocate" || (required_ & capability::atomics) != 0))
            throw usage_error(
                "UCX allocates windows and returns results of atomics in host memory only: choose --win create and "
                "puts or gets, or --memory host");
        return make_ucx_window(worker_, *this, memory, request);
    }

  private:
    void* receive_request(int peer, void* data, std::size_t bytes) {
        return ucp().tag_recv_nbx(worker_.get(), data, bytes, static_cast<ucp_tag_t>(peer), ~static_cast<ucp_tag_t>(0),
                                  &parameters_);
    }

    const ucp_tag_t tag_;
    const Capabilities required_;
    const bool has_gpu_buffers_;
    UcpWorker worker_;
    const ucp_request_param_t parameters_{};  // contiguous bytes, no callback
};

}  // namespace

std::unique_ptr<Transport> make_ucx_transport(const TransportSettings& settings) {
    return std::make_unique<UcxTransport>(settings);
}

}  // namespace fablint

#else

#include "base/errors.hpp"
#include "messaging/transport.hpp"

namespace fablint {

std::unique_ptr<Transport> make_ucx_transport(const TransportSettings&) {
    throw usage_error(
        "this engine was built without the headers of UCX: load the UCX module or install them (Debian: libucx-dev, "
        "Red Hat: ucx-devel), then run 'fablint engine build'");
}

}  // namespace fablint

#endif
