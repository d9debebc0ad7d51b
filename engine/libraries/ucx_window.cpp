// Remote memory access of UCP.
#include "libraries/ucp_worker.hpp"

#if __has_include(<ucp/api/ucp.h>)

#include <cstring>
#include <limits>

#include "libraries/library_window.hpp"

namespace fablint {

namespace {

// A window of memory that UCX allocates, so that ranks of a host can map it, or of memory of the engine.
class UcxWindow : public LibraryWindow, Atomics {
  public:
    UcxWindow(UcpWorker& worker, Transport& transport, Memory& memory, const WindowRequest& request)
        : LibraryWindow(transport, memory, request), worker_(worker), is_local_(request.sync == "flush_local") {
        ucp_mem_map_params_t parameters{};
        parameters.field_mask =
            UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_ADDRESS;
        void* const own = LibraryWindow::base();
        parameters.address = own;
        parameters.length = request.bytes;
        parameters.flags = own == nullptr ? UCP_MEM_MAP_ALLOCATE : 0;
        check_ucs(ucp().mem_map(worker.context(), &parameters, &region_), "window of --win " + request.win);
        base_ = own == nullptr ? allocated_by_ucx() : own;
        if (own == nullptr) std::memset(base_, 0, request.bytes);  // first touch, on the NUMA node of this thread
    }
    ~UcxWindow() override {
        for (const auto& [peer, target] : targets_) ucp().rkey_destroy(target.key);
        ucp().mem_unmap(worker_.context(), region_);
    }
    UcxWindow(const UcxWindow&) = delete;
    UcxWindow& operator=(const UcxWindow&) = delete;

    void* base() const override { return base_; }
    Atomics* atomics() override { return this; }

    // The base of this rank's window, and the packed key.
    std::string address() const override {
        void* packed = nullptr;
        std::size_t length = 0;
        check_ucs(ucp().rkey_pack(worker_.context(), region_, &packed, &length), "key of the window");
        const auto base = reinterpret_cast<std::uintptr_t>(base_);
        std::string text(reinterpret_cast<const char*>(&base), sizeof base);
        text.append(static_cast<const char*>(packed), length);
        ucp().rkey_buffer_release(packed);
        return text;
    }
    void connect(int peer, const std::string& address) override {
        Target target;
        std::memcpy(&target.base, address.data(), sizeof target.base);
        const ucs_status_t status =
            ucp().ep_rkey_unpack(worker_.endpoint(peer), address.data() + sizeof target.base, &target.key);
        if (status != UCS_OK)
            throw PeerFailure(peer, std::string("UCX: key of its window: ") + ucp().status_string(status));
        targets_[peer] = target;
    }

    void put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) override {
        Target& target = targets_.at(peer);
        for_each(buffers, target.base + offset,
                 [&, endpoint = worker_.endpoint(peer)](const char* data, std::uint64_t there) {
                     worker_.keep(peer, ucp().put_nbx(endpoint, data, bytes, there, target.key, &plain_));
                 });
        target.needs_flush = true;
    }
    void get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) override {
        const Target& target = targets_.at(peer);
        for_each(buffers, target.base + offset,
                 [&, endpoint = worker_.endpoint(peer)](char* data, std::uint64_t there) {
                     worker_.keep(peer, ucp().get_nbx(endpoint, data, bytes, there, target.key, &plain_));
                 });
    }
    void complete(int peer) override {
        if (is_local_) {
            worker_.complete();
        } else {
            flush(peer);
        }
        close_access(peer);
    }
    // Gets and atomics are complete at the target when they are complete here.
    void flush(int peer) override {
        worker_.complete();
        bool& needs_flush = targets_.at(peer).needs_flush;
        if (needs_flush) worker_.finish(peer, ucp().ep_flush_nbx(worker_.endpoint(peer), &plain_));
        needs_flush = false;
    }

    // UCX returns the previous content where it takes the new one from.
    void compare_and_swap(int peer, std::size_t offset, const void* value, const void* expected,
                          void* previous) override {
        std::memcpy(previous, value, sizeof(std::uint64_t));
        fetch(peer, UCP_ATOMIC_OP_CSWAP, expected, offset, previous);
    }
    void fetch_and_add(int peer, std::size_t offset, const void* value, void* previous) override {
        fetch(peer, UCP_ATOMIC_OP_ADD, value, offset, previous);
    }

  private:
    struct Target {
        std::uint64_t base = 0;
        ucp_rkey_h key = nullptr;
        bool needs_flush = false;  // puts since the last one
    };

    void* allocated_by_ucx() const {
        ucp_mem_attr_t attributes{};
        attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
        check_ucs(ucp().mem_query(region_, &attributes), "address of the window");
        return attributes.address;
    }
    void fetch(int peer, ucp_atomic_op_t operation, const void* operand, std::size_t offset, void* reply) {
        const Target& target = targets_.at(peer);
        ucp_request_param_t parameters{};
        parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        parameters.datatype = ucp_dt_make_contig(sizeof(std::uint64_t));
        parameters.reply_buffer = reply;
        worker_.keep(peer, ucp().atomic_op_nbx(worker_.endpoint(peer), operation, operand, 1, target.base + offset,
                                               target.key, &parameters));
    }

    UcpWorker& worker_;
    const bool is_local_;  // complete() waits for this end only
    void* base_ = nullptr;
    ucp_mem_h region_ = nullptr;
    std::map<int, Target> targets_;
    const ucp_request_param_t plain_{};
};

}  // namespace

std::unique_ptr<Window> make_ucx_window(UcpWorker& worker, Transport& transport, Memory& memory,
                                        const WindowRequest& request) {
    return std::make_unique<UcxWindow>(worker, transport, memory, request);
}

}  // namespace fablint

#endif
