// Kernels: the timed loops of the members of a group. A kernel is one file in kernels/ and one row of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/values.hpp"
#include "memories/payload.hpp"
#include "messaging/capabilities.hpp"
#include "messaging/transport.hpp"
#include "messaging/window.hpp"
#include "patterns/pattern.hpp"

namespace fablint {

// Options of a row that kernels read; registry/options.inc documents them.
struct KernelOptions {
    std::string kernel;
    std::string memory;
    Workers workers;   // of latency_mt and latency_mp
    std::string copy;  // of gpu_loopback: direction
    std::string win;
    std::string sync;
    int server_flight = 0;  // requests that a server processes at once
    std::string compute;    // of non-blocking collectives: computation as long as the call: none, alone, during
    int tests = 0;          // calls of MPI_Test during the computation
    bool in_place = false;  // one buffer for what a collective sends and receives
    bool validate = false;
};

// One member of a group at one message size.
struct Endpoint {
    Transport& transport;
    Window* remote;  // null for kernels that need no window
    Payload& payload;
    const std::vector<int>& peers;  // one; several for a hub; none in the world
    int rank;
    int ranks;  // of the run
    std::size_t bytes;
    int window;  // messages in flight to each peer

    int peer() const { return peers.front(); }
    // Message `slot` of the window to or from the peer of that index has a buffer of its own.
    int slot_of(std::size_t peer_index, int slot) const { return static_cast<int>(peer_index) * window + slot; }
    // Announces `times` windows from each peer, or as many acknowledgements of a byte from each.
    void expect_windows(std::int64_t times) const {
        for (std::size_t peer = 0; peer < peers.size(); ++peer)
            transport.expect_receives(peers[peer], payload.receives(slot_of(peer, 0), window), bytes, times);
    }
    void expect_acknowledgements(std::int64_t times) const {
        for (const int peer : peers) transport.expect_receives(peer, payload.receives(0, 1), 1, times);
    }
    // Posts the window to or from each peer.
    void post_sends() const {
        for (std::size_t peer = 0; peer < peers.size(); ++peer)
            transport.post_sends(peers[peer], payload.sends(slot_of(peer, 0), window), bytes);
    }
    void post_receives() const {
        for (std::size_t peer = 0; peer < peers.size(); ++peer)
            transport.post_receives(peers[peer], payload.receives(slot_of(peer, 0), window), bytes);
    }
};

// A message whose content is wrong at the receiver.
struct Damage {
    int src = 0;
    int dst = 0;
    std::size_t size = 0;
    std::int64_t message = 0;  // number since the start of this size and direction
    std::size_t offset = 0;    // of the first wrong byte
};

// Properties of a kernel that do not depend on the message size.
struct KernelTraits {
    // Messages that one repetition puts on the wire one after another in one direction, for each message of the window:
    // its time is divided by them.
    int messages = 1;
    // What the receive slots must hold after a sample, with --validate; none where nothing arrives.
    std::optional<Content> at_leader = std::nullopt;
    std::optional<Content> at_follower = Content::message;
    // Is the half of the payload that is sent in this rank's RMA window? Otherwise the half that is received.
    bool exposes_sent = false;
    int slots = 1;               // message slots for each message of the window to or from each peer
    int fixed_slots = 0;         // if above 0: the number of message slots, whatever the window
    bool slot_per_rank = false;  // one message slot for every rank of the run, in one block without gaps
    bool one_by_one = false;     // every repetition is a sample of its own unless the row has a batch
};

// One object per rank and row. `leads` distinguishes the two ends of a pair or star; in the world all ranks lead.
class Kernel {
  public:
    explicit Kernel(const KernelTraits& traits) : traits_(traits) {}
    virtual ~Kernel() = default;
    const KernelTraits& traits() const { return traits_; }
    int messages(int window) const { return traits_.messages * window; }
    int slots(int window, int fan, int ranks) const {
        if (traits_.slot_per_rank) return ranks;
        return traits_.fixed_slots > 0 ? traits_.fixed_slots : traits_.slots * window * fan;
    }

    // The timed loop: no allocation, no clock, no branch on options.
    virtual void lead(const Endpoint& end, std::int64_t repetitions) = 0;
    virtual void follow(const Endpoint& end, std::int64_t repetitions) = 0;

    // Before and after an order of that many repetitions, untimed. Followers are armed before the leader begins.
    virtual void arm(const Endpoint&, bool /*leads*/, std::int64_t /*repetitions*/) {}
    virtual void disarm(const Endpoint&, bool /*leads*/) {}
    // Before every sample, untimed: where all ranks must begin together.
    virtual void align(const Endpoint&) {}

    // With --validate, around every sample: write the content of the messages `first`, `first` + 1, ... that will be
    // sent and overwrite the receive slots; append wrong messages to `damages`.
    virtual void fill(const Endpoint& end, bool leads, std::int64_t first);
    virtual void check(const Endpoint& end, bool leads, std::int64_t first, std::vector<Damage>& damages);

  private:
    KernelTraits traits_;
};

// Of ping-pong kernels: a repetition is a message and its answer.
KernelTraits round_trip_traits();
// Of kernels in which both ends receive, in both directions at once.
KernelTraits both_receive_traits();

enum class Quantity { latency, bandwidth };
// Sender of the payload of a cell (src, dst).
enum class Sender { src, dst, both, none };
enum class Sizes { from_0, from_1, only_0, only_8, floats };

// A row of registry/kernels.inc, which documents the fields.
struct KernelInfo {
    const char* name = "";
    Quantity quantity{};
    Sender payload{};
    bool bidirectional = false;
    Sizes sizes{};
    const char* default_sizes = "";
    Capabilities required = capability::nothing;
    Shapes groups{};
    const char* options = "";
    const char* win = "";
    const char* sync = "";
    bool is_of_parts = false;
    bool is_divided = false;
    bool is_rooted = false;
    const char* datatype = "MPI_CHAR";
    const char* nccl_test = "";
    const char* osu_title = "";
    const char* description = "";
    std::unique_ptr<Kernel> (*make)(const KernelOptions&) = nullptr;

    bool accepts(const std::string& option) const;  // an option that does not apply to every kernel
    bool runs_on(Shapes shape) const { return (groups & shape) != 0; }
    bool needs(Capabilities capabilities) const { return (required & capabilities) == capabilities; }
    const char* default_pattern() const { return runs_on(shape::pairs) ? "pair" : "world"; }
    bool takes(std::size_t bytes) const;
    const char* sizes_hint() const;  // which sizes to choose instead of one that it does not take
    bool windowed() const { return accepts("window"); }
    bool one_sided() const { return needs(capability::rma); }
    bool collective() const { return needs(capability::collectives); }
    bool sends_messages() const { return runs_on(~shape::world) || collective(); }
};

// The table registry/kernels.inc.
const std::vector<KernelInfo>& kernels();
const KernelInfo& kernel_named(const std::string& name);  // throws a usage error

const char* word(Quantity quantity);
const char* word(Sender sender);

// Defined in the files of kernels/.
#define KERNEL(name, ...) std::unique_ptr<Kernel> make_##name(const KernelOptions&);
#include "registry/kernels.inc"

}  // namespace fablint
