#include <doctest.h>

#include <algorithm>
#include <cstring>

#include "memories/payload.hpp"

using namespace fablint;

namespace {

using Layout = Payload::Layout;

// A host payload for so many slots of a size.
struct Slots {
    Slots(std::size_t size, int slots, Layout layout = Layout::spaced)
        : memory(make_memory("host")),
          payload(*memory, Payload::half_footprint(size, slots, layout), layout),
          bytes(size) {
        payload.set_size(size);
    }
    unsigned char* sent(int slot) { return static_cast<unsigned char*>(payload.send_slot(slot)); }
    unsigned char* received(int slot) { return static_cast<unsigned char*>(payload.receive_slot(slot)); }
    void deliver(int slot) { std::memcpy(received(slot), sent(slot), bytes); }

    std::unique_ptr<Memory> memory;
    Payload payload;
    std::size_t bytes;
};

constexpr std::size_t some_sizes[] = {1, 7, 8, 9, 4096, 5000};

}  // namespace

TEST_CASE("a payload shows the first wrong byte, wherever it is") {
    for (const std::size_t bytes : some_sizes) {
        Slots slots(bytes, 2);
        slots.payload.fill(1, 3, 5, 17);
        slots.deliver(1);
        CHECK_FALSE(slots.payload.damage(1, 3, 5, 17));
        for (const std::size_t at : {bytes - 1, bytes / 2, std::size_t{0}}) {
            slots.received(1)[at] = static_cast<unsigned char>(slots.sent(1)[at] ^ 1U);
            CHECK(slots.payload.damage(1, 3, 5, 17).value() == at);
        }
    }
}

TEST_CASE("a payload belongs to one message of one ordered pair") {
    Slots slots(8, 1);
    slots.payload.fill(0, 3, 5, 17);
    slots.deliver(0);
    CHECK(slots.payload.damage(0, 3, 5, 18));
    CHECK(slots.payload.damage(0, 5, 3, 17));
    CHECK(slots.payload.damage(0, 3, -1, 17));
    CHECK(slots.payload.damage(0, 2, 5, 17));
}

TEST_CASE("the previous content of a slot is not a message, and differs between leader and follower") {
    for (const std::size_t bytes : some_sizes) {
        Slots slots(bytes, 1);
        for (const bool at_leader : {true, false}) {
            slots.payload.poison(0, at_leader);
            CHECK(slots.payload.damage(0, 3, 5, 17).has_value());
            CHECK(slots.payload.damage(0, 3, 5, 17, Content::untouched).has_value() == at_leader);
        }
    }
}

TEST_CASE("an empty message is never damaged") {
    Slots slots(0, 4);
    slots.payload.fill(3, 0, 1, 0);
    slots.payload.poison(3, true);
    CHECK_FALSE(slots.payload.damage(3, 0, 1, 0));
}

TEST_CASE("a sum is the previous content plus the message, byte by byte or as one number") {
    for (const std::size_t bytes : some_sizes) {
        Slots slots(bytes, 1);
        slots.payload.fill(0, 3, 5, 17, true);
        slots.payload.poison(0, false);
        for (std::size_t at = 0; at < bytes; ++at) CHECK(slots.received(0)[at] + slots.sent(0)[at] < 256);
        for (std::size_t at = 0; at < bytes; ++at)
            slots.received(0)[at] = static_cast<unsigned char>(slots.received(0)[at] + slots.sent(0)[at]);
        CHECK_FALSE(slots.payload.damage(0, 3, 5, 17, Content::sum));
        CHECK(slots.payload.damage(0, 3, 5, 17).has_value());
        slots.received(0)[bytes - 1] ^= 0x80U;
        CHECK(slots.payload.damage(0, 3, 5, 17, Content::sum).value() == bytes - 1);
    }
    Slots number(8, 1);
    number.payload.fill(0, 3, 5, 17);
    std::uint64_t sent = 0;
    std::memcpy(&sent, number.sent(0), sizeof sent);
    const std::uint64_t sum = sent + Payload::poisoned_number();
    std::memcpy(number.received(0), &sum, sizeof sum);
    CHECK_FALSE(number.payload.damage(0, 3, 5, 17, Content::sum64));
    CHECK(number.payload.damage(0, 3, 5, 18, Content::sum64).has_value());
    number.payload.poison(0, false);
    std::uint64_t poisoned = 0;
    std::memcpy(&poisoned, number.received(0), sizeof poisoned);
    CHECK(poisoned == Payload::poisoned_number());
}

TEST_CASE("slots of a window do not overlap and fit the allocation, at every size up to the largest") {
    Slots slots(5000, 3);
    for (const std::size_t bytes : some_sizes) {
        slots.payload.set_size(bytes);
        CHECK(slots.sent(1) >= slots.sent(0) + bytes);
        CHECK(slots.sent(2) >= slots.sent(1) + bytes);
        CHECK(slots.sent(2) + bytes <= slots.sent(0) + Payload::half_footprint(5000, 3, Layout::spaced));
        CHECK(slots.payload.offset_of(2) == static_cast<std::size_t>(slots.received(2) - slots.received(0)));
    }
}

TEST_CASE("dense slots have no gaps, single ones share a place") {
    Slots dense(12, 5, Layout::dense);
    CHECK(dense.sent(4) == dense.sent(0) + 4 * 12);
    CHECK(Payload::half_footprint(1000, 5, Layout::dense) == 5000);
    Slots single(5000, 64, Layout::single);
    CHECK(single.sent(63) == single.sent(0));
    CHECK(single.received(63) == single.received(0));
    CHECK(Payload::half_footprint(5000, 64, Layout::single) < 3 * 5000);
    CHECK(Payload::half_footprint(5000, 64, Layout::single) >= 5000);
}

TEST_CASE("a payload may lie in memory that was lent") {
    const auto memory = make_memory("host");
    const std::size_t half = Payload::half_footprint(64, 2, Layout::spaced);
    std::vector<unsigned char> lent(half);
    for (const bool receive_half : {true, false}) {
        void* const here = lent.data();
        Payload payload(*memory, half, Layout::spaced, receive_half ? here : nullptr, receive_half ? nullptr : here);
        payload.set_size(64);
        CHECK((payload.receive_slot(0) == here) == receive_half);
        CHECK((payload.send_slot(0) == here) != receive_half);
        payload.fill(0, 1, 2, 3);
        payload.poison(0, false);
        CHECK(std::count(lent.begin(), lent.begin() + 64, 0) < 8);
        std::fill(lent.begin(), lent.end(), static_cast<unsigned char>(0));
    }
}
