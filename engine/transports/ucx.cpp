#include "transports/transport.hpp"

#if __has_include(<ucp/api/ucp.h>)

#include <sched.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <map>

#include "base/shared_library.hpp"
#include "gpu/gpu_runtime.hpp"

namespace fablint {

namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr auto close_limit = std::chrono::seconds(2);

// The functions of libucp in use. The library is loaded at run time: the engine links MPI only.
struct Ucp {
    Ucp() {
        const SharedLibrary library("libucp.so.0",
                                    "load the UCX module or install UCX (Debian: libucx0, Red Hat: ucx), or choose "
                                    "another --transport");
#define LOAD(name) library.load(name, "ucp_" #name)
        LOAD(config_read);
        LOAD(config_modify);
        LOAD(config_release);
        LOAD(init_version);
        LOAD(cleanup);
        LOAD(worker_create);
        LOAD(context_query);
        LOAD(worker_destroy);
        LOAD(worker_get_address);
        LOAD(worker_release_address);
        LOAD(worker_progress);
        LOAD(worker_flush_nbx);
        LOAD(ep_create);
        LOAD(ep_close_nbx);
        LOAD(tag_send_nbx);
        LOAD(tag_recv_nbx);
        LOAD(request_check_status);
        LOAD(request_free);
#undef LOAD
        library.load(status_string, "ucs_status_string");
    }

    decltype(ucp_config_read)* config_read;
    decltype(ucp_config_modify)* config_modify;
    decltype(ucp_config_release)* config_release;
    decltype(ucp_init_version)* init_version;
    decltype(ucp_cleanup)* cleanup;
    decltype(ucp_worker_create)* worker_create;
    decltype(ucp_context_query)* context_query;
    decltype(ucp_worker_destroy)* worker_destroy;
    decltype(ucp_worker_get_address)* worker_get_address;
    decltype(ucp_worker_release_address)* worker_release_address;
    decltype(ucp_worker_progress)* worker_progress;
    decltype(ucp_worker_flush_nbx)* worker_flush_nbx;
    decltype(ucp_ep_create)* ep_create;
    decltype(ucp_ep_close_nbx)* ep_close_nbx;
    decltype(ucp_tag_send_nbx)* tag_send_nbx;
    decltype(ucp_tag_recv_nbx)* tag_recv_nbx;
    decltype(ucp_request_check_status)* request_check_status;
    decltype(ucp_request_free)* request_free;
    decltype(ucs_status_string)* status_string;
};

const Ucp& ucp() {
    static const Ucp library;
    return library;
}

void check(ucs_status_t status, const std::string& action) {
    if (status != UCS_OK) throw usage_error("UCX: " + action + ": " + ucp().status_string(status));
}

// A context and its worker. `device` is a list of devices as UCX_NET_DEVICES takes it; empty: that variable decides.
class UcpWorker {
  public:
    explicit UcpWorker(const std::string& device) {
        ucp_config_t* config = nullptr;
        check(ucp().config_read(nullptr, nullptr, &config), "configuration");
        ucs_status_t status = UCS_OK;
        if (!device.empty()) status = ucp().config_modify(config, "NET_DEVICES", device.c_str());
        ucp_params_t parameters{};
        parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
        parameters.features = UCP_FEATURE_TAG;
        if (status == UCS_OK) status = ucp().init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context_);
        ucp().config_release(config);
        check(status, device.empty() ? "start" : "start with --device " + device);
        ucp_worker_params_t worker_parameters{};
        worker_parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker_parameters.thread_mode = UCS_THREAD_MODE_SINGLE;
        status = ucp().worker_create(context_, &worker_parameters, &worker_);
        if (status != UCS_OK) ucp().cleanup(context_);
        check(status, "worker");
    }
    ~UcpWorker() {
        ucp().worker_destroy(worker_);
        ucp().cleanup(context_);
    }
    UcpWorker(const UcpWorker&) = delete;
    UcpWorker& operator=(const UcpWorker&) = delete;

    ucp_worker_h get() const { return worker_; }
    bool has_memory_type(ucs_memory_type_t type) const {
        ucp_context_attr_t attributes{};
        attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
        check(ucp().context_query(context_, &attributes), "memory types");
        return (attributes.memory_types >> type & 1U) != 0;
    }
    std::string address() const {
        ucp_address_t* bytes = nullptr;
        std::size_t length = 0;
        check(ucp().worker_get_address(worker_, &bytes, &length), "address");
        const std::string text(reinterpret_cast<const char*>(bytes), length);
        ucp().worker_release_address(worker_, bytes);
        return text;
    }

  private:
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
};

// Tagged messages of UCP. The tag is the rank of the sender.
class UcxTransport : public Transport {
  public:
    explicit UcxTransport(const TransportSettings& settings)
        : tag_(static_cast<ucp_tag_t>(settings.rank)), yielding_(settings.yielding), worker_(settings.device) {}

    ~UcxTransport() override {
        std::vector<void*> closing;
        for (const auto& [peer, endpoint] : endpoints_) {
            ucp_request_param_t no_flags{};
            void* request = ucp().ep_close_nbx(endpoint, &no_flags);
            if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
        }
        // A peer that has ended confirms nothing.
        const auto deadline = SteadyTime::now() + close_limit;
        for (void* request : closing) {
            while (ucp().request_check_status(request) == UCS_INPROGRESS && SteadyTime::now() < deadline) progress();
            ucp().request_free(request);
        }
    }

    std::string address() const override { return worker_.address(); }
    bool takes_gpu_memory(GpuApi api) const override {
        return worker_.has_memory_type(api == GpuApi::cuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_ROCM);
    }

    void connect(int peer, const std::string& address) override {
        ucp_ep_params_t parameters{};
        parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
        ucp_ep_h endpoint = nullptr;
        const ucs_status_t status = ucp().ep_create(worker_.get(), &parameters, &endpoint);
        if (status != UCS_OK) throw PeerFailure(peer, std::string("UCX: no endpoint: ") + ucp().status_string(status));
        endpoints_[peer] = endpoint;
    }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        const ucp_ep_h endpoint = endpoints_.at(peer);
        const char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            keep(peer, ucp().tag_send_nbx(endpoint, data, bytes, tag_, &parameters_));
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            keep(peer, ucp().tag_recv_nbx(worker_.get(), data, bytes, static_cast<ucp_tag_t>(peer),
                                          ~static_cast<ucp_tag_t>(0), &parameters_));
    }
    void complete() override {
        for (const Posted& posted : posted_) finish(posted.peer, posted.request);
        posted_.clear();
    }

    void finish() override {
        ucp_request_param_t no_flags{};
        void* request = ucp().worker_flush_nbx(worker_.get(), &no_flags);
        if (!UCS_PTR_IS_PTR(request)) return;
        while (ucp().request_check_status(request) == UCS_INPROGRESS) progress();
        ucp().request_free(request);
    }

    void send(int peer, const void* data, std::size_t bytes) override {
        finish(peer, ucp().tag_send_nbx(endpoints_.at(peer), data, bytes, tag_, &parameters_));
    }
    void receive(int peer, void* data, std::size_t bytes) override {
        finish(peer, ucp().tag_recv_nbx(worker_.get(), data, bytes, static_cast<ucp_tag_t>(peer),
                                        ~static_cast<ucp_tag_t>(0), &parameters_));
    }

  private:
    struct Posted {
        int peer;
        void* request;
    };

    // A request that is complete already is null.
    void keep(int peer, void* request) {
        if (request != nullptr) posted_.push_back({peer, request});
    }

    void finish(int peer, void* request) {
        if (request == nullptr) return;
        ucs_status_t status = UCS_PTR_STATUS(request);
        if (UCS_PTR_IS_PTR(request)) {
            while ((status = ucp().request_check_status(request)) == UCS_INPROGRESS) progress();
            ucp().request_free(request);
        }
        if (status != UCS_OK) throw PeerFailure(peer, std::string("UCX: ") + ucp().status_string(status));
    }

    // With more ranks than CPUs, a rank that spins takes the CPU from its peer.
    void progress() {
        if (ucp().worker_progress(worker_.get()) == 0 && yielding_) sched_yield();
    }

    const ucp_tag_t tag_;
    const bool yielding_;
    UcpWorker worker_;
    std::map<int, ucp_ep_h> endpoints_;
    std::vector<Posted> posted_;
    const ucp_request_param_t parameters_{};  // contiguous bytes, no callback
};

}  // namespace

std::unique_ptr<Transport> make_ucx_transport(const TransportSettings& settings) {
    return std::make_unique<UcxTransport>(settings);
}

}  // namespace fablint

#else

#include "base/errors.hpp"

namespace fablint {

std::unique_ptr<Transport> make_ucx_transport(const TransportSettings&) {
    throw usage_error(
        "this engine was built without the headers of UCX: load the UCX module or install them (Debian: libucx-dev, "
        "Red Hat: ucx-devel), then run 'fablint engine build'");
}

}  // namespace fablint

#endif
