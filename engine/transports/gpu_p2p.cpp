#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/errors.hpp"
#include "gpu/gpu_inbox.hpp"
#include "libraries/library_window.hpp"
#include "messaging/transport.hpp"

namespace fablint {

namespace {

using SteadyTime = std::chrono::steady_clock;

// While nothing moves, the transport looks at the clock after so many polls, and at the peers after so long.
constexpr int polls_between_checks = 4096;
constexpr auto quiet_limit = std::chrono::seconds(1);

const char* name_of(GpuApi api) { return api == GpuApi::cuda ? "cuda-p2p" : "hip-p2p"; }

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

// A GPU of a rank, as the other ranks know it: "HOST PCI-ADDRESS".
struct GpuAddress {
    explicit GpuAddress(const std::string& text) { std::istringstream(text) >> host >> pci; }
    bool operator==(const GpuAddress& other) const { return host == other.host && pci == other.pci; }
    std::string host, pci;
};

// Memory of GPUs of other processes. An allocation is mapped when the first message goes there, and stays mapped.
class MappedAllocations {
  public:
    explicit MappedAllocations(const GpuRuntime& runtime) : runtime_(runtime) {}
    ~MappedAllocations() { unmap(); }
    MappedAllocations(const MappedAllocations&) = delete;
    MappedAllocations& operator=(const MappedAllocations&) = delete;

    char* address_of(const GpuRuntime::SharedMemory& memory) {
        auto known = mapped_.find(memory.handle);
        if (known == mapped_.end())
            known = mapped_.emplace(memory.handle, static_cast<char*>(runtime_.map(memory))).first;
        return known->second + memory.offset;
    }
    void unmap() {
        for (const auto& [handle, data] : mapped_) runtime_.unmap(data);
        mapped_.clear();
    }

  private:
    const GpuRuntime& runtime_;
    std::map<std::array<char, 64>, char*> mapped_;
};

// Messages that this rank has posted, in the order in which they are copied.
struct PostedSends {
    Buffers<const char> buffers;
    std::size_t bytes;
};

struct Peer {
    explicit Peer(const GpuRuntime& gpus) : runtime(gpus), stream(gpus.create_stream()) {}
    ~Peer() { runtime.destroy(stream); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    bool is_complete() const { return sends.empty() && copying == 0 && windows.empty() && inbox.arrived() == awaited; }

    const GpuRuntime& runtime;
    const GpuStream stream;            // of the copies to the peer
    GpuInbox inbox;                    // of this rank: messages from the peer
    std::optional<GpuInbox> other;     // that of the peer: messages to it
    std::deque<PostedWindow> windows;  // that the inbox has no room for
    std::uint64_t awaited = 0;         // messages since the beginning
    std::deque<PostedSends> sends;
    int used = 0;               // buffers of the peer's next window
    std::uint64_t copying = 0;  // messages in the stream
};

// Copies from memory of the rank's GPU to that of the peer's GPU, which the peer has shared with this process. The
// receiver posts its buffers; the sender waits for them, copies into them in its stream and counts the messages that
// have arrived when the stream is empty. A message therefore has no intermediate copy, and its time includes the wait
// until the sender knows the buffer.
class GpuPeerTransport : public Transport, Rma {
  public:
    GpuPeerTransport(GpuApi api, const TransportSettings& settings)
        : api_(api),
          rank_(settings.rank),
          yielding_(settings.yielding),
          runtime_(runtime_for(api, settings)),
          own_(host_name() + ' ' + runtime_.current().pci),
          mapped_(runtime_) {}

    bool takes_gpu_memory(GpuApi api) const override { return api == api_; }
    Rma* rma() override { return this; }
    std::unique_ptr<Window> expose(Memory& memory, const WindowRequest& request) override;

    std::string devices() const override {
        std::string text;
        for (const std::string& link : links_) text += (text.empty() ? "" : "; ") + link;
        return text;
    }

    std::string address() const override { return own_.host + ' ' + own_.pci; }

    void join(const std::vector<std::string>& addresses) override {
        for (int rank = 0; rank < static_cast<int>(addresses.size()); ++rank)
            if (rank != rank_ && own_ == GpuAddress(addresses[static_cast<std::size_t>(rank)]))
                throw usage_error(std::string(name_of(api_)) + " copies between GPUs, and ranks " +
                                  std::to_string(std::min(rank, rank_)) + " and " +
                                  std::to_string(std::max(rank, rank_)) + " have the same one, " + own_.pci + " of " +
                                  own_.host + ": start as many ranks on a host as it has GPUs, " +
                                  std::to_string(runtime_.count()) + " here");
    }

    std::string open_connection(int peer) override {
        return ' ' + peers_.try_emplace(peer, runtime_).first->second.inbox.address();
    }

    void connect(int peer, const std::string& address) override {
        check_access(peer, GpuAddress(address));
        with_peer(peer, [&] { peers_.at(peer).other.emplace(address.substr(address.rfind(' ') + 1)); });
    }

    void disconnect() override {
        mapped_.unmap();
        shared_.clear();
    }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        peers_.at(peer).sends.push_back({buffers, bytes});
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t) override {
        Peer& from = peers_.at(peer);
        from.windows.push_back({shared(buffers.first), buffers.stride, buffers.count});
        from.awaited += static_cast<std::uint64_t>(buffers.count);
        post_windows(from);
    }
    void complete() override {
        for (bool is_complete = false; !is_complete;) {
            bool moved = false;
            is_complete = true;
            for (auto& [rank, peer] : peers_) {
                moved = advance(rank, peer) || moved;
                is_complete = is_complete && peer.is_complete();
            }
            if (!is_complete) wait(moved);
        }
    }

    // Of the window:
    const GpuRuntime& runtime() const { return runtime_; }
    char* mapped(int peer, const GpuRuntime::SharedMemory& memory) {
        char* address = nullptr;
        with_peer(peer, [&] { address = mapped_.address_of(memory); });
        return address;
    }
    void queue_copy(int peer, void* to, const void* from, std::size_t bytes) {
        runtime_.queue_copy(GpuCopy::between_devices, to, from, bytes, peers_.at(peer).stream);
    }
    void complete_copies(int peer) {
        while (!runtime_.is_idle(peers_.at(peer).stream))
            if (yielding_) sched_yield();
    }

  private:
    static const GpuRuntime& runtime_for(GpuApi api, const TransportSettings& settings) {
        if (settings.gpu != api) throw usage_error(std::string(name_of(api)) + " moves memory of GPUs only");
        return GpuRuntime::of(api);
    }

    void check_access(int peer, const GpuAddress& there) {
        switch (runtime_.peer_access(there.pci)) {
            case GpuPeerAccess::none:
                throw PeerFailure(peer, std::string(name_of(api_)) + ": the driver has no peer access from GPU " +
                                            own_.pci + " to " + there.pci + ": choose --transport nccl or mpi");
            case GpuPeerAccess::not_visible:
                links_.insert("peer access, GPU of the peer not visible to the rank");
                break;
            case GpuPeerAccess::without_atomics:
                links_.insert("peer access without atomics");
                break;
            case GpuPeerAccess::with_atomics:
                links_.insert("peer access with atomics");
                break;
        }
    }

    // Buffers keep their place for the whole row.
    const GpuRuntime::SharedMemory& shared(const void* data) {
        auto known = shared_.find(data);
        if (known == shared_.end()) known = shared_.emplace(data, runtime_.share(data)).first;
        return known->second;
    }

    static bool post_windows(Peer& from) {
        bool moved = false;
        while (!from.windows.empty() && from.inbox.post(from.windows.front())) {
            from.windows.pop_front();
            moved = true;
        }
        return moved;
    }

    // An error of the work is one of the connection to that rank.
    template <typename Work>
    static void with_peer(int peer, Work work) {
        if (const std::optional<Error> error = attempt(work)) throw PeerFailure(peer, error->what());
    }

    // True if anything happened.
    bool advance(int rank, Peer& peer) {
        bool moved = post_windows(peer);
        while (!peer.sends.empty() && peer.other->next() != nullptr) {
            copy_into(*peer.other->next(), rank, peer);
            moved = true;
        }
        if (peer.copying == 0 || !runtime_.is_idle(peer.stream)) return moved;
        peer.other->add_arrived(peer.copying);
        peer.copying = 0;
        return true;
    }

    // As many messages as the window and the first posted sends have in common.
    void copy_into(const PostedWindow& window, int rank, Peer& peer) {
        PostedSends& sends = peer.sends.front();
        const int count = std::min(window.count - peer.used, sends.buffers.count);
        char* to = mapped(rank, window.memory) + static_cast<std::size_t>(peer.used) * window.stride;
        for (int i = 0; i < count; ++i, to += window.stride, sends.buffers.first += sends.buffers.stride)
            runtime_.queue_copy(GpuCopy::between_devices, to, sends.buffers.first, sends.bytes, peer.stream);
        peer.copying += static_cast<std::uint64_t>(count);
        peer.used += count;
        sends.buffers.count -= count;
        if (peer.used == window.count) {
            peer.other->remove();
            peer.used = 0;
        }
        if (sends.buffers.count == 0) peer.sends.pop_front();
    }

    // With more ranks than CPUs, a rank that spins takes the CPU from its peer.
    void wait(bool moved) {
        if (yielding_) sched_yield();
        if (moved) quiet_polls_ = 0;
        if (moved || ++quiet_polls_ % polls_between_checks != 0) return;
        const auto now = SteadyTime::now();
        if (quiet_polls_ == polls_between_checks) quiet_since_ = now;
        if (now - quiet_since_ < quiet_limit) return;
        quiet_since_ = now;
        for (const auto& [rank, peer] : peers_)
            if (!peer.is_complete() && !peer.other->has_owner()) throw PeerFailure(rank, "its process has ended");
    }

    const GpuApi api_;
    const int rank_;
    const bool yielding_;
    const GpuRuntime& runtime_;
    const GpuAddress own_;
    MappedAllocations mapped_;
    std::map<const void*, GpuRuntime::SharedMemory> shared_;  // by the address of the buffer
    std::set<std::string> links_;
    std::map<int, Peer> peers_;
    int quiet_polls_ = 0;
    SteadyTime::time_point quiet_since_;
};

// A window of memory of this rank's GPU. An access is complete when its copies are: it needs nothing of the target.
class GpuPeerWindow : public LibraryWindow {
  public:
    GpuPeerWindow(GpuPeerTransport& transport, Memory& memory, const WindowRequest& request)
        : LibraryWindow(transport, memory, request), transport_(transport) {}

    std::string address() const override {
        const GpuRuntime::SharedMemory own = transport_.runtime().share(base());
        return {reinterpret_cast<const char*>(&own), sizeof own};
    }
    void connect(int peer, const std::string& address) override {
        GpuRuntime::SharedMemory memory{};
        std::memcpy(&memory, address.data(), sizeof memory);
        targets_[peer] = transport_.mapped(peer, memory);
    }
    void put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) override {
        for_each(buffers, target(peer, offset), [&](const char* data, std::uint64_t there) {
            transport_.queue_copy(peer, reinterpret_cast<void*>(there), data, bytes);
        });
    }
    void get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) override {
        for_each(buffers, target(peer, offset), [&](char* data, std::uint64_t there) {
            transport_.queue_copy(peer, data, reinterpret_cast<const void*>(there), bytes);
        });
    }
    void complete(int peer) override { transport_.complete_copies(peer); }
    void flush(int peer) override { transport_.complete_copies(peer); }

  private:
    std::uint64_t target(int peer, std::size_t offset) const {
        return reinterpret_cast<std::uint64_t>(targets_.at(peer)) + offset;
    }

    GpuPeerTransport& transport_;
    std::map<int, char*> targets_;
};

std::unique_ptr<Window> GpuPeerTransport::expose(Memory& memory, const WindowRequest& request) {
    return std::make_unique<GpuPeerWindow>(*this, memory, request);
}

}  // namespace

std::unique_ptr<Transport> make_cuda_p2p_transport(const TransportSettings& settings) {
    return std::make_unique<GpuPeerTransport>(GpuApi::cuda, settings);
}

std::unique_ptr<Transport> make_hip_p2p_transport(const TransportSettings& settings) {
    return std::make_unique<GpuPeerTransport>(GpuApi::hip, settings);
}

}  // namespace fablint
