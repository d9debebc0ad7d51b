// The message buffers of one rank: a ring of send slots and one of receive slots, and what is written into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memory.hpp"

namespace fablint {

// Every message of a window has a buffer of its own: receives into one buffer at the same time are not legal MPI, and a
// single buffer shows the cache's speed rather than the fabric's.
class Payload {
  public:
    Payload(Memory& memory, std::size_t largest, int slots);
    ~Payload();
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;

    // Slots of a message size stand close together, a page apart at most, so that small ones do not collide in the
    // cache.
    void set_size(std::size_t bytes);
    void* send_slot(int slot) const { return send_ + static_cast<std::size_t>(slot) * stride_; }
    void* receive_slot(int slot) const { return receive_ + static_cast<std::size_t>(slot) * stride_; }

    // Fill a send slot with what message number `message` from `src` to `dst` must contain; make a receive slot hold
    // anything else.
    void fill(int slot, int src, int dst, std::int64_t message);
    void poison(int slot);
    // The offset of the first wrong byte in a receive slot, if any.
    std::optional<std::size_t> damage(int slot, int src, int dst, std::int64_t message);

    // Bytes that a rank allocates for such messages.
    static std::size_t footprint(std::size_t largest, int slots);

  private:
    static std::size_t stride_of(std::size_t bytes);
    void pattern(std::vector<unsigned char>& bytes, int src, int dst, std::int64_t message) const;

    Memory& memory_;
    std::size_t bytes_ = 0;
    std::size_t stride_ = 0;
    unsigned char* send_ = nullptr;
    unsigned char* receive_ = nullptr;
    std::vector<unsigned char> expected_, found_;
};

}  // namespace fablint
