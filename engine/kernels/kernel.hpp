// What the members of a group do: the timed loop. A kernel is one file in kernels/ and one row of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/payload.hpp"
#include "patterns/pattern.hpp"
#include "transports/capabilities.hpp"
#include "transports/one_sided.hpp"
#include "transports/transport.hpp"

namespace fablint {

struct RowOptions;

// One member of a group at one message size.
struct End {
    Transport& transport;
    OneSided* remote;  // null for kernels that need no window
    Payload& payload;
    const std::vector<int>& peers;  // one but for hubs; empty in the world
    int rank;
    int ranks;  // of the run
    std::size_t bytes;
    int window;  // messages in flight to each peer

    int peer() const { return peers.front(); }
    // Message `slot` of the window to or from the peer of that index has a buffer of its own.
    int slot_of(std::size_t peer_index, int slot) const { return static_cast<int>(peer_index) * window + slot; }
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

// A payload that did not arrive as it was sent.
struct Damage {
    int src = 0;
    int dst = 0;
    std::size_t size = 0;
    std::int64_t message = 0;  // number since the start of this size and direction
    std::size_t offset = 0;    // of the first wrong byte
};

// One object per rank and row. `leads` tells the two ends of a pair or star apart; in the world all lead.
class Kernel {
  public:
    virtual ~Kernel() = default;
    // Messages that one repetition puts one after another on the wire in one direction: its time is divided by this.
    virtual int messages(int /*window*/) const { return 1; }

    // What must be found in the receive slots after a sample, with --validate; nothing where nothing arrives.
    virtual std::optional<Content> at_leader() const { return std::nullopt; }
    virtual std::optional<Content> at_follower() const { return Content::message; }
    // Which half of the payload do the others see in this rank's window?
    virtual bool exposes_what_is_sent() const { return false; }

    // Message slots a rank needs; are they one block without gaps?
    virtual int slots(int window, int fan, int /*ranks*/) const { return window * fan; }
    virtual bool dense() const { return false; }
    // Is every repetition a sample of its own?
    virtual bool one_by_one() const { return false; }

    // Around an order of so many repetitions; nobody times it. Followers are armed before the leader begins.
    virtual void arm(const End&, bool /*leads*/, std::int64_t /*repetitions*/) {}
    virtual void disarm(const End&, bool /*leads*/) {}
    // Before every sample, not timed: where all must begin together.
    virtual void align(const End&) {}

    // The timed loop: no allocation, no clock, no branch on options.
    virtual void lead(const End& end, std::int64_t repetitions) = 0;
    virtual void follow(const End& end, std::int64_t repetitions) = 0;

    // With --validate, around every sample: write what will be sent as messages `first`, `first` + 1, ... and spoil
    // what will be received; add what arrived wrong to `damages`.
    virtual void fill(const End& end, bool leads, std::int64_t first);
    virtual void check(const End& end, bool leads, std::int64_t first, std::vector<Damage>& damages);
};

enum class Quantity { latency, bandwidth };
// Sender of the payload of a cell (src, dst).
enum class Sender { src, dst, both, none };
enum class Sizes { from_0, from_1, only_0, only_8, floats };

// A row of registry/kernels.inc, which documents the fields.
struct KernelInfo {
    const char* name;
    const char* description;
    const char* osu_title;
    Quantity quantity;
    Sender payload;
    bool bidirectional;
    Sizes sizes;
    const char* default_sizes;
    Capabilities required;
    Shapes shapes;
    const char* options;
    const char* win;
    const char* sync;
    std::unique_ptr<Kernel> (*make)(const RowOptions&);

    bool accepts(const std::string& option) const;  // an option that does not apply to every kernel
    bool runs_on(Shapes shape) const { return (shapes & shape) != 0; }
    bool needs(Capabilities capabilities) const { return (required & capabilities) == capabilities; }
    const char* default_pattern() const { return runs_on(shape::pairs) ? "pair" : "world"; }
    bool takes(std::size_t bytes) const;
    const char* sizes_hint() const;  // which sizes to choose instead of one that it does not take
    bool windowed() const { return accepts("window"); }
    bool one_sided() const { return needs(capability::rma); }
    bool collective() const { return needs(capability::collectives); }
};

// The table registry/kernels.inc.
const std::vector<KernelInfo>& kernels();
const KernelInfo& kernel_named(const std::string& name);  // throws a usage error

const char* word(Quantity quantity);
const char* word(Sender sender);

// Defined in the files of kernels/.
#define KERNEL(name, ...) std::unique_ptr<Kernel> make_##name(const RowOptions&);
#include "registry/kernels.inc"

}  // namespace fablint
