// Remote memory access of libfabric.
#include "libraries/ofi_endpoint.hpp"

#if __has_include(<rdma/fi_tagged.h>)

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>

#include "libraries/library_window.hpp"

namespace fablint {

namespace {

// A window of memory of the engine. A put is complete when its bytes are visible at the target
// (FI_DELIVERY_COMPLETE), so that waiting for completions is a flush.
class OfiWindow : public LibraryWindow, Atomics, Accumulation {
  public:
    OfiWindow(OfiEndpoint& endpoint, Transport& transport, Memory& memory, const WindowRequest& request,
              std::uint64_t number, Capabilities required)
        : LibraryWindow(transport, memory, request), endpoint_(endpoint) {
        find_limits(required);
        // Keys below 100 are those of the fast regions of cxi. A provider with FI_MR_PROV_KEY ignores the number.
        fid_mr* region = nullptr;
        check_ofi(fi_mr_reg(endpoint.domain(), base(), request.bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, number, 0,
                            &region, nullptr),
                  "registration of the window");
        region_.reset(region);
        if ((mode() & FI_MR_ENDPOINT) == 0) return;
        check_ofi(fi_mr_bind(region, &endpoint.get()->fid, 0), "binding of the window");
        check_ofi(fi_mr_enable(region), "window");
    }

    Atomics* atomics() override { return this; }
    Accumulation* accumulation() override { return this; }

    std::string address() const override {
        const bool is_virtual = (mode() & FI_MR_VIRT_ADDR) != 0;
        const Target own{is_virtual ? reinterpret_cast<std::uintptr_t>(base()) : 0, fi_mr_key(region_.get())};
        return {reinterpret_cast<const char*>(&own), sizeof own};
    }
    void connect(int peer, const std::string& address) override {
        std::memcpy(&targets_[peer], address.data(), sizeof(Target));
    }

    void put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) override {
        const Target& target = targets_.at(peer);
        for_each(buffers, target.base + offset, [&, to = endpoint_.place(peer)](const char* data, std::uint64_t there) {
            const iovec buffer{const_cast<char*>(data), bytes};
            const fi_rma_iov remote{there, bytes, target.key};
            fi_msg_rma message{};
            message.msg_iov = &buffer;
            message.iov_count = 1;
            message.addr = to;
            message.rma_iov = &remote;
            message.rma_iov_count = 1;
            message.context = endpoint_.new_operation(peer);
            endpoint_.retry(
                peer, [&] { return fi_writemsg(endpoint_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
        });
    }
    void get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) override {
        const Target& target = targets_.at(peer);
        for_each(buffers, target.base + offset, [&, from = endpoint_.place(peer)](char* data, std::uint64_t there) {
            endpoint_.retry(peer, [&, operation = endpoint_.new_operation(peer)] {
                return fi_read(endpoint_.get(), data, bytes, nullptr, from, there, target.key, operation);
            });
        });
    }
    void complete(int peer) override {
        endpoint_.complete();
        close_access(peer);
    }
    void flush(int) override { endpoint_.complete(); }

    void compare_and_swap(int peer, std::size_t offset, const void* value, const void* expected,
                          void* previous) override {
        const Target& target = targets_.at(peer);
        endpoint_.retry(peer, [&, operation = endpoint_.new_operation(peer)] {
            return fi_compare_atomic(endpoint_.get(), value, 1, nullptr, expected, nullptr, previous, nullptr,
                                     endpoint_.place(peer), target.base + offset, target.key, FI_UINT64, FI_CSWAP,
                                     operation);
        });
    }
    void fetch_and_add(int peer, std::size_t offset, const void* value, void* previous) override {
        fetch_sum(peer, offset, value, previous, 1, FI_UINT64);
    }
    void accumulate(int peer, std::size_t offset, const void* data, std::size_t bytes) override {
        const Target& target = targets_.at(peer);
        auto* const first = static_cast<char*>(const_cast<void*>(data));
        for (std::size_t done = 0; done < bytes; done += most_summed_) {
            if (done > 0) endpoint_.complete();  // several at once crash the shm provider of libfabric 1.17
            const std::size_t count = std::min(most_summed_, bytes - done);
            const fi_ioc buffer{first + done, count};
            const fi_rma_ioc remote{target.base + offset + done, count, target.key};
            fi_msg_atomic message{};
            message.msg_iov = &buffer;
            message.iov_count = 1;
            message.addr = endpoint_.place(peer);
            message.rma_iov = &remote;
            message.rma_iov_count = 1;
            message.datatype = FI_UINT8;
            message.op = FI_SUM;
            message.context = endpoint_.new_operation(peer);
            endpoint_.retry(
                peer, [&] { return fi_atomicmsg(endpoint_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
        }
    }
    void get_accumulate(int peer, std::size_t offset, const void* data, void* previous, std::size_t bytes) override {
        const auto* const first = static_cast<const char*>(data);
        auto* const result = static_cast<char*>(previous);
        for (std::size_t done = 0; done < bytes; done += most_fetched_)
            fetch_sum(peer, offset + done, first + done, result + done, std::min(most_fetched_, bytes - done),
                      FI_UINT8);
    }

  private:
    struct Target {
        std::uint64_t base = 0;  // address, or 0 where the provider counts from the start of the region
        std::uint64_t key = 0;
    };

    int mode() const { return endpoint_.info().domain_attr->mr_mode; }

    // Operations in one call. Throws a usage error where the provider lacks an operation that the kernel needs.
    void find_limits(Capabilities required) {
        constexpr Capabilities of_atomics = capability::atomics | capability::accumulation;
        if ((required & of_atomics) != 0 && endpoint_.is_rxd())
            throw usage_error("provider " + std::string(endpoint_.info().fabric_attr->prov_name) +
                              " of libfabric crashes in atomics that return the previous content (ofiwg/libfabric "
                              "11814): choose another --ofi-provider or --transport");
        std::size_t count = 0;
        if ((required & capability::atomics) != 0) {
            check_atomic(fi_fetch_atomicvalid(endpoint_.get(), FI_UINT64, FI_SUM, &count), "fetch-and-add of 8 bytes");
            check_atomic(fi_compare_atomicvalid(endpoint_.get(), FI_UINT64, FI_CSWAP, &count),
                         "compare-and-swap of 8 bytes");
        }
        if ((required & capability::accumulation) != 0) {
            check_atomic(fi_atomicvalid(endpoint_.get(), FI_UINT8, FI_SUM, &most_summed_), "sum of bytes");
            check_atomic(fi_fetch_atomicvalid(endpoint_.get(), FI_UINT8, FI_SUM, &most_fetched_),
                         "sum of bytes that returns the previous content");
        }
    }
    void check_atomic(int result, const std::string& operation) const {
        if (result != 0)
            throw usage_error("provider " + std::string(endpoint_.info().fabric_attr->prov_name) +
                              " of libfabric has no " + operation + ": choose another --ofi-provider or --transport");
    }

    // The completion of an operation that returns something confirms it. (FI_DELIVERY_COMPLETE is refused by cxi.)
    void fetch_sum(int peer, std::size_t offset, const void* data, void* previous, std::size_t count,
                   fi_datatype type) {
        const Target& target = targets_.at(peer);
        endpoint_.retry(peer, [&, operation = endpoint_.new_operation(peer)] {
            return fi_fetch_atomic(endpoint_.get(), data, count, nullptr, previous, nullptr, endpoint_.place(peer),
                                   target.base + offset, target.key, type, FI_SUM, operation);
        });
    }

    OfiEndpoint& endpoint_;
    OwnedFid<fid_mr> region_;  // closed before the base class releases its memory
    std::map<int, Target> targets_;
    std::size_t most_summed_ = 0, most_fetched_ = 0;
};

}  // namespace

std::unique_ptr<Window> make_ofi_window(OfiEndpoint& endpoint, Transport& transport, Memory& memory,
                                        const WindowRequest& request, std::uint64_t number, Capabilities required) {
    return std::make_unique<OfiWindow>(endpoint, transport, memory, request, number, required);
}

}  // namespace fablint

#endif
