#include "transports/transport.hpp"

#if __has_include(<rdma/fi_tagged.h>)

#undef getopt  // smpicxx defines getopt as a macro; fi_endpoint.h has a member of this name

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>

#include <array>
#include <map>

#include "base/shared_library.hpp"

namespace fablint {

namespace {

// The exported functions of libfabric in use; the others are entries of its objects. The library is loaded at run time:
// the engine links MPI only.
struct Libfabric {
    Libfabric() {
        const SharedLibrary library("libfabric.so.1",
                                    "load the libfabric module or install libfabric (Debian: libfabric1, Red Hat: "
                                    "libfabric), or choose another --transport");
        library.load(getinfo, "fi_getinfo");
        library.load(freeinfo, "fi_freeinfo");
        library.load(dupinfo, "fi_dupinfo");
        library.load(fabric, "fi_fabric");
        library.load(error_text, "fi_strerror");
    }

    decltype(fi_getinfo)* getinfo;
    decltype(fi_freeinfo)* freeinfo;
    decltype(fi_dupinfo)* dupinfo;
    decltype(fi_fabric)* fabric;
    decltype(fi_strerror)* error_text;
};

const Libfabric& libfabric() {
    static const Libfabric library;
    return library;
}

template <typename Result>
void check(Result result, const std::string& action) {
    if (result < 0)
        throw usage_error("libfabric: " + action + ": " + libfabric().error_text(static_cast<int>(-result)));
}

struct CloseObject {
    template <typename Object>
    void operator()(Object* object) const {
        fi_close(&object->fid);
    }
};

template <typename Object>
using Owned = std::unique_ptr<Object, CloseObject>;

struct FreeInfo {
    void operator()(fi_info* info) const { libfabric().freeinfo(info); }
};

using Info = std::unique_ptr<fi_info, FreeInfo>;

// Reliable datagrams with tags. Providers that require registered message buffers or progress by hand of remote
// accesses are not excluded by anything else: tagged messages need neither.
Info find_provider(const std::string& provider, const std::string& device) {
    const Info hints(libfabric().dupinfo(nullptr));
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    // fi_freeinfo frees the names with the hints.
    if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
    if (!device.empty()) hints->domain_attr->name = strdup(device.c_str());
    fi_info* list = nullptr;
    const int result = libfabric().getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, hints.get(), &list);
    if (result == 0) return Info(list);
    const std::string asked =
        (provider.empty() ? "" : " --ofi-provider " + provider) + (device.empty() ? "" : " --device " + device);
    throw usage_error("libfabric has no provider of tagged messages" + (asked.empty() ? "" : " for" + asked) + ": " +
                      libfabric().error_text(-result) + " (fi_info -t FI_EP_RDM -c FI_TAGGED lists them)");
}

// Tagged messages of an endpoint FI_EP_RDM. The tag is the rank of the sender.
class OfiTransport : public Transport {
  public:
    explicit OfiTransport(const TransportSettings& settings)
        : tag_(static_cast<std::uint64_t>(settings.rank)),
          yielding_(settings.yielding),
          info_(find_provider(settings.provider, settings.device)) {
        fid_fabric* fabric = nullptr;
        check(libfabric().fabric(info_->fabric_attr, &fabric, nullptr), "fabric");
        fabric_.reset(fabric);
        fid_domain* domain = nullptr;
        check(fi_domain(fabric, info_.get(), &domain, nullptr), "domain " + std::string(info_->domain_attr->name));
        domain_.reset(domain);
        fi_cq_attr queue_attributes{};
        queue_attributes.format = FI_CQ_FORMAT_CONTEXT;
        queue_attributes.size = info_->tx_attr->size + info_->rx_attr->size;
        fid_cq* queue = nullptr;
        check(fi_cq_open(domain, &queue_attributes, &queue, nullptr), "completion queue");
        completions_.reset(queue);
        fi_av_attr vector_attributes{};
        vector_attributes.type = FI_AV_MAP;
        fid_av* vector = nullptr;
        check(fi_av_open(domain, &vector_attributes, &vector, nullptr), "address vector");
        addresses_.reset(vector);
        fid_ep* endpoint = nullptr;
        check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "endpoint");
        endpoint_.reset(endpoint);
        check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "binding of the completion queue");
        check(fi_ep_bind(endpoint, &vector->fid, 0), "binding of the address vector");
        check(fi_enable(endpoint), "endpoint");
    }

    std::string address() const override {
        std::array<char, 512> bytes;
        std::size_t length = bytes.size();
        check(fi_getname(&endpoint_->fid, bytes.data(), &length), "address");
        return {bytes.data(), length};
    }

    void connect(int peer, const std::string& address) override {
        fi_addr_t place = FI_ADDR_UNSPEC;
        if (fi_av_insert(addresses_.get(), address.data(), 1, &place, 0, nullptr) != 1)
            throw PeerFailure(peer, "libfabric does not accept the address of the rank");
        peers_[peer] = place;
    }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        const fi_addr_t to = peers_.at(peer);
        const char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride) post_send(peer, to, data, bytes);
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        const fi_addr_t from = peers_.at(peer);
        char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            retry(peer, [&, operation = new_operation(peer, false)] {
                return fi_trecv(endpoint_.get(), data, bytes, nullptr, from, static_cast<std::uint64_t>(peer), 0,
                                operation);
            });
    }
    void complete() override {
        while (awaited_ > 0) progress();
    }
    void finish() override {
        while (awaited_ + copied_ > 0) progress();
    }

  private:
    // An operation in flight. The provider uses the context until the operation is complete.
    struct Operation {
        fi_context2 context;  // first: a completion has its address
        int peer;
        bool is_copied;  // the provider has copied the message: its buffer may be used again at once
    };

    void post_send(int peer, fi_addr_t to, const char* data, std::size_t bytes) {
        const bool is_copied = bytes <= info_->tx_attr->inject_size;
        iovec buffer{const_cast<char*>(data), bytes};
        fi_msg_tagged message{};
        message.msg_iov = &buffer;
        message.iov_count = 1;
        message.addr = to;
        message.tag = tag_;
        message.context = new_operation(peer, is_copied);
        const std::uint64_t flags = FI_COMPLETION | FI_TRANSMIT_COMPLETE | (is_copied ? FI_INJECT : 0);
        retry(peer, [&] { return fi_tsendmsg(endpoint_.get(), &message, flags); });
    }

    Operation* new_operation(int peer, bool is_copied) {
        if (free_.empty()) free_.push_back(operations_.emplace_back(std::make_unique<Operation>()).get());
        Operation* const operation = free_.back();
        free_.pop_back();
        operation->peer = peer;
        operation->is_copied = is_copied;
        ++(is_copied ? copied_ : awaited_);
        return operation;
    }

    void remove(void* context) {
        auto* const operation = static_cast<Operation*>(context);
        --(operation->is_copied ? copied_ : awaited_);
        free_.push_back(operation);
    }

    // Repeats a call that finds the queue of the provider full.
    template <typename Call>
    void retry(int peer, Call call) {
        for (;;) {
            const ssize_t result = call();
            if (result == 0) return;
            if (result != -FI_EAGAIN)
                throw PeerFailure(peer, std::string("libfabric: ") + libfabric().error_text(static_cast<int>(-result)));
            progress();
        }
    }

    // With more ranks than CPUs, a rank that spins takes the CPU from its peer.
    void progress() {
        std::array<fi_cq_entry, 16> entries;
        const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
        for (ssize_t i = 0; i < count; ++i) remove(entries[static_cast<std::size_t>(i)].op_context);
        if (count == -FI_EAGAIN && yielding_) sched_yield();
        if (count < 0 && count != -FI_EAGAIN) fail();
    }

    [[noreturn]] void fail() {
        fi_cq_err_entry error{};
        fi_cq_readerr(completions_.get(), &error, 0);
        const int peer =
            error.op_context != nullptr ? static_cast<Operation*>(error.op_context)->peer : peers_.begin()->first;
        throw PeerFailure(peer, std::string("libfabric: ") + libfabric().error_text(error.err));
    }

    const std::uint64_t tag_;
    const bool yielding_;
    // Closed in the reverse order.
    Info info_;
    Owned<fid_fabric> fabric_;
    Owned<fid_domain> domain_;
    Owned<fid_cq> completions_;
    Owned<fid_av> addresses_;
    Owned<fid_ep> endpoint_;
    std::map<int, fi_addr_t> peers_;
    std::vector<std::unique_ptr<Operation>> operations_;
    std::vector<Operation*> free_;
    std::size_t awaited_ = 0;  // operations in flight for which complete() waits
    std::size_t copied_ = 0;   // sends in flight whose message the provider has copied
};

}  // namespace

std::unique_ptr<Transport> make_ofi_transport(const TransportSettings& settings) {
    return std::make_unique<OfiTransport>(settings);
}

}  // namespace fablint

#else

#include "base/errors.hpp"

namespace fablint {

std::unique_ptr<Transport> make_ofi_transport(const TransportSettings&) {
    throw usage_error(
        "this engine was built without the headers of libfabric: load the libfabric module or install them (Debian: "
        "libfabric-dev, Red Hat: libfabric-devel), then run 'fablint engine build'");
}

}  // namespace fablint

#endif
