#if __has_include(<infiniband/verbs.h>)

#include "verbs/verbs_window.hpp"

#include <cstring>
#include <map>

#include "base/errors.hpp"
#include "libraries/library_window.hpp"

namespace fablint {

namespace {

// A window of memory of the engine. An access is complete when the other end has acknowledged it, or sent its result,
// so that waiting for completions is a flush, as in UCX and libfabric over such connections.
class VerbsWindow : public LibraryWindow, Atomics {
  public:
    VerbsWindow(VerbsDevice& device, RemoteAccess& access, Transport& transport, Memory& memory,
                const WindowRequest& request, Capabilities required)
        : LibraryWindow(transport, memory, request), access_(access) {
        const bool has_atomics = device.limits().atomic_cap != IBV_ATOMIC_NONE;
        if ((required & capability::atomics) != 0 && !has_atomics)
            throw usage_error("device " + device.port().device +
                              " has no atomics: choose another --device or --transport");
        const int of_atomics = has_atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0;
        region_ =
            device.registered(base(), request.bytes,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | of_atomics);
    }

    Atomics* atomics() override { return this; }

    std::string address() const override {
        const Target own{reinterpret_cast<std::uintptr_t>(base()), region_->rkey};
        return {reinterpret_cast<const char*>(&own), sizeof own};
    }
    void connect(int peer, const std::string& address) override {
        std::memcpy(&targets_[peer], address.data(), sizeof(Target));
    }

    void put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) override {
        post(peer, offset, IBV_WR_RDMA_WRITE, {const_cast<char*>(buffers.first), buffers.stride, buffers.count}, bytes);
    }
    void get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) override {
        post(peer, offset, IBV_WR_RDMA_READ, buffers, bytes);
    }
    void complete(int peer) override {
        access_.complete_accesses();
        close_access(peer);
    }
    void flush(int) override { access_.complete_accesses(); }

    void compare_and_swap(int peer, std::size_t offset, const void* value, const void* expected,
                          void* previous) override {
        post_atomic(peer, offset, IBV_WR_ATOMIC_CMP_AND_SWP, number_at(expected), number_at(value), previous);
    }
    void fetch_and_add(int peer, std::size_t offset, const void* value, void* previous) override {
        post_atomic(peer, offset, IBV_WR_ATOMIC_FETCH_AND_ADD, number_at(value), 0, previous);
    }

  private:
    struct Target {
        std::uint64_t base = 0;
        std::uint32_t key = 0;
    };

    static std::uint64_t number_at(const void* data) {
        std::uint64_t number = 0;
        std::memcpy(&number, data, sizeof number);
        return number;
    }

    void post(int peer, std::size_t offset, ibv_wr_opcode opcode, const Buffers<char>& buffers, std::size_t bytes) {
        const Target& target = targets_.at(peer);
        access_.post_access(peer, {VerbsWork::Kind::access, opcode, buffers.first, buffers.stride, buffers.count,
                                   static_cast<std::uint32_t>(bytes), 0, target.base + offset, target.key});
    }
    void post_atomic(int peer, std::size_t offset, ibv_wr_opcode opcode, std::uint64_t operand, std::uint64_t exchange,
                     void* previous) {
        const Target& target = targets_.at(peer);
        access_.post_access(peer, {VerbsWork::Kind::access, opcode, static_cast<char*>(previous), 0, 1,
                                   sizeof(std::uint64_t), 0, target.base + offset, target.key, operand, exchange});
    }

    RemoteAccess& access_;
    VerbsObject<ibv_mr> region_;  // closed before the base class releases its memory
    std::map<int, Target> targets_;
};

}  // namespace

std::unique_ptr<Window> make_verbs_window(VerbsDevice& device, RemoteAccess& access, Transport& transport,
                                          Memory& memory, const WindowRequest& request, Capabilities required) {
    return std::make_unique<VerbsWindow>(device, access, transport, memory, request, required);
}

}  // namespace fablint

#endif
