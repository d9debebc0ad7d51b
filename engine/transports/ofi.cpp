#include "libraries/ofi_endpoint.hpp"

#if __has_include(<rdma/fi_tagged.h>)

#include <rdma/fi_tagged.h>

namespace fablint {

namespace {

// Tagged messages of an endpoint FI_EP_RDM. The tag is the rank of the sender.
class OfiTransport : public Transport, Rma {
  public:
    explicit OfiTransport(const TransportSettings& settings)
        : tag_(static_cast<std::uint64_t>(settings.rank)), required_(settings.required), endpoint_(settings) {}

    std::string address() const override { return endpoint_.address(); }
    void connect(int peer, const std::string& address) override { endpoint_.connect(peer, address); }
    std::string devices() const override { return endpoint_.device(); }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        const fi_addr_t to = endpoint_.place(peer);
        const char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride) post_send(peer, to, data, bytes);
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        const fi_addr_t from = endpoint_.place(peer);
        char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            endpoint_.retry(peer, [&, operation = endpoint_.new_operation(peer)] {
                return fi_trecv(endpoint_.get(), data, bytes, nullptr, from, static_cast<std::uint64_t>(peer), 0,
                                operation);
            });
    }
    void complete() override { endpoint_.complete(); }
    void finish() override { endpoint_.finish(); }
    bool has_active_target() const override { return true; }
    bool serve() override { return endpoint_.progress(); }

    Rma* rma() override { return this; }
    std::unique_ptr<Window> expose(Memory& memory, const WindowRequest& request) override {
        return make_ofi_window(endpoint_, *this, memory, request, windows_++, required_);
    }

  private:
    void post_send(int peer, fi_addr_t to, const char* data, std::size_t bytes) {
        const bool is_copied = endpoint_.is_copied(bytes);
        iovec buffer{const_cast<char*>(data), bytes};
        fi_msg_tagged message{};
        message.msg_iov = &buffer;
        message.iov_count = 1;
        message.addr = to;
        message.tag = tag_;
        message.context = endpoint_.new_operation(peer, is_copied);
        const std::uint64_t flags = FI_COMPLETION | FI_TRANSMIT_COMPLETE | (is_copied ? FI_INJECT : 0);
        endpoint_.retry(peer, [&] { return fi_tsendmsg(endpoint_.get(), &message, flags); });
    }

    const std::uint64_t tag_;
    const Capabilities required_;
    OfiEndpoint endpoint_;
    std::uint64_t windows_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_ofi_transport(const TransportSettings& settings) {
    return std::make_unique<OfiTransport>(settings);
}

}  // namespace fablint

#else

#include "base/errors.hpp"
#include "messaging/transport.hpp"

namespace fablint {

std::unique_ptr<Transport> make_ofi_transport(const TransportSettings&) {
    throw usage_error(
        "this engine was built without the headers of libfabric: load the libfabric module or install them (Debian: "
        "libfabric-dev, Red Hat: libfabric-devel), then run 'fablint engine build'");
}

}  // namespace fablint

#endif
