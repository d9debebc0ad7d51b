// UCP: the functions of the library in use, and a worker with its endpoints.
#pragma once

#if __has_include(<ucp/api/ucp.h>)

#include <ucp/api/ucp.h>

#include <map>
#include <string>
#include <vector>

#include "messaging/transport.hpp"

namespace fablint {

// The functions of libucp in use. The library is loaded at run time: the engine links MPI only.
struct Ucp {
    Ucp();

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
    decltype(ucp_ep_flush_nbx)* ep_flush_nbx;
    decltype(ucp_context_print_info)* context_print_info;
    decltype(ucp_ep_print_info)* ep_print_info;
    decltype(ucp_ep_rkey_unpack)* ep_rkey_unpack;
    decltype(ucp_tag_send_nbx)* tag_send_nbx;
    decltype(ucp_tag_recv_nbx)* tag_recv_nbx;
    decltype(ucp_put_nbx)* put_nbx;
    decltype(ucp_get_nbx)* get_nbx;
    decltype(ucp_atomic_op_nbx)* atomic_op_nbx;
    decltype(ucp_mem_map)* mem_map;
    decltype(ucp_mem_unmap)* mem_unmap;
    decltype(ucp_mem_query)* mem_query;
    decltype(ucp_rkey_pack)* rkey_pack;
    decltype(ucp_rkey_buffer_release)* rkey_buffer_release;
    decltype(ucp_rkey_destroy)* rkey_destroy;
    decltype(ucp_request_check_status)* request_check_status;
    decltype(ucp_request_free)* request_free;
    decltype(ucs_status_string)* status_string;
};

const Ucp& ucp();
void check_ucs(ucs_status_t status, const std::string& action);  // throws a usage error

// A context, its worker, and an endpoint for each peer. The device of the settings is a list as UCX_NET_DEVICES takes
// it; empty: that variable decides.
class UcpWorker {
  public:
    explicit UcpWorker(const TransportSettings& settings);
    ~UcpWorker();
    UcpWorker(const UcpWorker&) = delete;
    UcpWorker& operator=(const UcpWorker&) = delete;

    ucp_context_h context() const { return context_; }
    ucp_worker_h get() const { return worker_; }
    bool has_memory_type(ucs_memory_type_t type) const;
    std::string address() const;
    void connect(int peer, const std::string& address);
    ucp_ep_h endpoint(int peer) const { return endpoints_.at(peer); }
    // Transports and devices of the endpoints, as "cma/memory, tcp/eth0".
    std::string devices() const;

    // An operation that complete() waits for. A request that is complete already is null.
    void keep(int peer, void* request) {
        if (request != nullptr) posted_.push_back({peer, request});
    }
    void complete() {
        for (const Posted& posted : posted_) finish(posted.peer, posted.request);
        posted_.clear();
    }
    // Waits for one operation.
    void finish(int peer, void* request) {
        if (request == nullptr) return;
        ucs_status_t status = UCS_PTR_STATUS(request);
        if (UCS_PTR_IS_PTR(request)) {
            while ((status = ucp_.request_check_status(request)) == UCS_INPROGRESS) wait();
            ucp_.request_free(request);
        }
        if (status != UCS_OK) throw PeerFailure(peer, std::string("UCX: ") + ucp_.status_string(status));
    }
    // Waits until everything is on the wire.
    void flush();
    bool progress() { return ucp_.worker_progress(worker_) != 0; }

  private:
    struct Posted {
        int peer;
        void* request;
    };

    void wait();

    const Ucp& ucp_ = ucp();
    const bool yielding_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    std::map<int, ucp_ep_h> endpoints_;
    std::vector<Posted> posted_;
};

// Exposes memory to remote access through the worker.
std::unique_ptr<Window> make_ucx_window(UcpWorker& worker, Transport& transport, Memory& memory,
                                        const WindowRequest& request);

}  // namespace fablint

#endif
