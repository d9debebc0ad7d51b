// libfabric: an endpoint FI_EP_RDM with its completions and the addresses of the peers.
#pragma once

#if __has_include(<rdma/fi_tagged.h>)

#undef getopt  // smpicxx defines getopt as a macro; fi_endpoint.h has a member of this name

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "messaging/transport.hpp"

namespace fablint {

// The exported functions of libfabric in use; the others are entries of its objects. The library is loaded at run time:
// the engine links MPI only.
struct Libfabric {
    Libfabric();

    decltype(fi_getinfo)* getinfo;
    decltype(fi_freeinfo)* freeinfo;
    decltype(fi_dupinfo)* dupinfo;
    decltype(fi_fabric)* fabric;
    decltype(fi_strerror)* error_text;
};

const Libfabric& libfabric();

template <typename Result>
void check_ofi(Result result, const std::string& action) {
    if (result < 0)
        throw usage_error("libfabric: " + action + ": " + libfabric().error_text(static_cast<int>(-result)));
}

struct CloseFid {
    template <typename Object>
    void operator()(Object* object) const {
        fi_close(&object->fid);
    }
};

template <typename Object>
using OwnedFid = std::unique_ptr<Object, CloseFid>;

struct FreeInfo {
    void operator()(fi_info* info) const { libfabric().freeinfo(info); }
};

using Info = std::unique_ptr<fi_info, FreeInfo>;

class OfiEndpoint {
  public:
    // An operation in flight. The provider uses the context until the operation is complete.
    struct Operation {
        fi_context2 context;  // first: a completion has its address
        int peer;
        bool is_copied;  // as OfiEndpoint::is_copied() of the message
    };

    explicit OfiEndpoint(const TransportSettings& settings);

    fid_ep* get() const { return endpoint_.get(); }
    fid_domain* domain() const { return domain_.get(); }
    const fi_info& info() const { return *info_; }
    std::string address() const;
    void connect(int peer, const std::string& address);
    fi_addr_t place(int peer) const { return peers_.at(peer); }
    // Does the provider copy a message of that size when it is sent, so that its buffer may be used again at once?
    bool is_copied(std::size_t bytes) const { return !is_rxd_ && bytes <= info_->tx_attr->inject_size; }
    // The utility provider ofi_rxd of libfabric. It completes a message that is sent with FI_INJECT without its
    // context, and crashes in atomics that return the previous content (ofiwg/libfabric 11814).
    bool is_rxd() const { return is_rxd_; }
    std::string device() const;  // provider and domain, as "tcp;ofi_rxm/eth0"

    Operation* new_operation(int peer, bool is_copied = false) {
        if (free_.empty()) free_.push_back(operations_.emplace_back(std::make_unique<Operation>()).get());
        Operation* const operation = free_.back();
        free_.pop_back();
        operation->peer = peer;
        operation->is_copied = is_copied;
        ++(is_copied ? copied_ : awaited_);
        return operation;
    }

    // Repeats a call that finds the queue of the provider full.
    template <typename Call>
    void retry(int peer, Call call) {
        for (;;) {
            const ssize_t result = call();
            if (result == 0) return;
            if (result != -FI_EAGAIN)
                throw PeerFailure(peer, std::string("libfabric: ") + libfabric().error_text(static_cast<int>(-result)));
            wait();
        }
    }

    // Waits for all operations, apart from those whose message the provider has copied.
    void complete() {
        while (awaited_ > 0) wait();
    }
    // Waits for all operations.
    void finish() {
        while (awaited_ + copied_ > 0) wait();
    }
    bool progress();

  private:
    void remove(void* context) {
        auto* const operation = static_cast<Operation*>(context);
        --(operation->is_copied ? copied_ : awaited_);
        free_.push_back(operation);
    }
    void wait();
    [[noreturn]] void fail();

    const bool yielding_;
    // Closed in the reverse order.
    Info info_;
    const bool is_rxd_;
    OwnedFid<fid_fabric> fabric_;
    OwnedFid<fid_domain> domain_;
    OwnedFid<fid_cq> completions_;
    OwnedFid<fid_av> addresses_;
    OwnedFid<fid_ep> endpoint_;
    std::map<int, fi_addr_t> peers_;
    std::vector<std::unique_ptr<Operation>> operations_;
    std::vector<Operation*> free_;
    std::size_t awaited_ = 0;  // operations in flight for which complete() waits
    std::size_t copied_ = 0;   // sends in flight whose message the provider has copied
};

// Exposes memory to remote access through the endpoint. `number`: of the window in this endpoint, from 0.
std::unique_ptr<Window> make_ofi_window(OfiEndpoint& endpoint, Transport& transport, Memory& memory,
                                        const WindowRequest& request, std::uint64_t number, Capabilities required);

}  // namespace fablint

#endif
