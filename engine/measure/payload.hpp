// The message buffers of one rank: a ring of send slots and one of receive slots, and what is written into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memories/memory.hpp"

namespace fablint {

// What a receive slot holds after a message: what was at the follower before, what was sent, or the sum of both, byte
// by byte or as one 8-byte number.
enum class Content { untouched, message, sum, sum64 };

// Every message of a window has a buffer of its own: receives into one buffer at the same time are not legal MPI, and a
// single buffer shows the cache's speed rather than the fabric's.
class Payload {
  public:
    enum class Layout { spaced, dense, single };

    // `lent_receive`, `lent_send`: memory to use (an RMA window's) instead of allocating that half.
    Payload(Memory& memory, std::size_t bytes_of_half, Layout layout, void* lent_receive = nullptr,
            void* lent_send = nullptr);
    ~Payload();
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;

    // Slots of a message size stand close together, a page apart at most, so that small ones do not collide in the
    // cache; without any gap when dense; all in the same place when single.
    void set_size(std::size_t bytes);
    std::size_t offset_of(int slot) const { return static_cast<std::size_t>(slot) * stride_; }  // in its half
    void* send_slot(int slot) const { return send_ + offset_of(slot); }
    void* receive_slot(int slot) const { return receive_ + offset_of(slot); }

    // `count` slots from `slot` on.
    Buffers<const char> sends(int slot, int count) const {
        return {static_cast<const char*>(send_slot(slot)), stride_, count};
    }
    Buffers<char> receives(int slot, int count) const {
        return {static_cast<char*>(receive_slot(slot)), stride_, count};
    }

    // Fill a send slot with what message number `message` from `src` to `dst` must contain; make a receive slot hold
    // anything else, and another thing at the leader than at the follower.
    // `small`: no byte above 127, for messages that are summed: libraries differ in what they do beyond 255 (Open
    // MPI 4.1 with AVX saturates).
    void fill(int slot, int src, int dst, std::int64_t message, bool small = false);
    void poison(int slot, bool at_leader);
    // The offset of the first wrong byte in a receive slot, if any.
    std::optional<std::size_t> damage(int slot, int src, int dst, std::int64_t message,
                                      Content content = Content::message);

    // What poison() writes into a follower's slot of an 8-byte message.
    static std::uint64_t poisoned_number();

    // Bytes of one half that so many slots of that size take.
    static std::size_t half_footprint(std::size_t bytes, int slots, Layout layout);

    Memory& memory() const { return memory_; }

  private:
    static std::size_t stride_of(std::size_t bytes, Layout layout);
    void expect(int src, int dst, std::int64_t message, Content content);

    Memory& memory_;
    Layout layout_;
    std::size_t bytes_ = 0;
    std::size_t stride_ = 0;
    bool owns_send_, owns_receive_;
    unsigned char* send_;
    unsigned char* receive_;
    std::vector<unsigned char> expected_, found_;
};

}  // namespace fablint
