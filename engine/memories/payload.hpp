// The message buffers of one rank, send slots and receive slots, and their content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memories/memory.hpp"

namespace fablint {

// Content of a receive slot after a message: the previous content of the follower's slot, the sent message, or their
// sum, byte by byte or as one 8-byte number.
enum class Content { untouched, message, sum, sum64 };

// Every message of a window has a buffer of its own: concurrent receives into one buffer are not legal MPI, and a
// single buffer shows the speed of the cache.
class Payload {
  public:
    enum class Layout { spaced, dense, single };

    // `lent_receive`, `lent_send`: memory of an RMA window for that half, which is then not allocated. `in_place`: both
    // halves are the same memory.
    Payload(Memory& memory, std::size_t bytes_of_half, Layout layout, void* lent_receive = nullptr,
            void* lent_send = nullptr, bool in_place = false);
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;

    // Layout of the slots: spaced: multiples of a cache line, or of a page for large messages, so that small ones do
    // not collide in the cache; dense: without gaps; single: all slots at the same address.
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

    // fill() writes the content of message number `message` from `src` to `dst` into a send slot; poison() writes other
    // content into a receive slot, different at the leader and the follower. `small`: no byte above 127, for messages
    // that are summed: libraries differ in sums above 255 (Open MPI 4.1 with AVX saturates).
    void fill(int slot, int src, int dst, std::int64_t message, bool small = false);
    void poison(int slot, bool at_leader);
    // The offset of the first wrong byte in a receive slot, if any.
    std::optional<std::size_t> damage(int slot, int src, int dst, std::int64_t message,
                                      Content content = Content::message);

    // The content that poison() writes into a follower's slot of 8 bytes.
    static std::uint64_t poisoned_number();

    // Bytes of one half with that number of slots.
    static std::size_t half_footprint(std::size_t bytes, int slots, Layout layout);

    Memory& memory() const { return memory_; }

  private:
    static std::size_t stride_of(std::size_t bytes, Layout layout);
    void expect(int src, int dst, std::int64_t message, Content content);

    Memory& memory_;
    Layout layout_;
    std::size_t bytes_ = 0;
    std::size_t stride_ = 0;
    OwnedMemory own_receive_, own_send_;  // null: lent, or in place
    unsigned char* receive_;
    unsigned char* send_;
    std::vector<unsigned char> expected_, found_;
};

}  // namespace fablint
