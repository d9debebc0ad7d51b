#include "memories/payload.hpp"

#include <algorithm>
#include <cstring>

#include "base/permutation.hpp"

namespace fablint {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t page = 4096;
constexpr unsigned char poison_byte = 0x6e;  // small enough that the sum with a small byte is below 256
constexpr unsigned char small_mask = 0x7f;
constexpr unsigned char leader_poison_byte = 0x11;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// The content of a message: one number per 8 bytes, a hash of source, destination, message number and offset.
void write_message(std::vector<unsigned char>& bytes, int src, int dst, std::int64_t message) {
    const std::uint64_t key =
        mix(mix(static_cast<std::uint64_t>(src), static_cast<std::uint64_t>(dst)), static_cast<std::uint64_t>(message));
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = mix(key, at);
        std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
    }
}

}  // namespace

std::size_t Payload::stride_of(std::size_t bytes, Layout layout) {
    if (layout == Layout::dense) return bytes;
    if (layout == Layout::single) return 0;
    return std::max(cache_line, bytes < page ? round_up(bytes, cache_line) : round_up(bytes, page));
}

std::size_t Payload::half_footprint(std::size_t bytes, int slots, Layout layout) {
    const int apart = layout == Layout::single ? 1 : slots;
    return std::max<std::size_t>(cache_line, stride_of(bytes, layout == Layout::single ? Layout::spaced : layout) *
                                                 static_cast<std::size_t>(apart));
}

Payload::Payload(Memory& memory, std::size_t bytes_of_half, Layout layout, void* lent_receive, void* lent_send,
                 bool in_place)
    : memory_(memory),
      layout_(layout),
      own_receive_(lent_receive == nullptr ? memory.allocate(bytes_of_half) : nullptr, ReleaseMemory{&memory}),
      own_send_(lent_send == nullptr && !in_place ? memory.allocate(bytes_of_half) : nullptr, ReleaseMemory{&memory}),
      receive_(static_cast<unsigned char*>(own_receive_ ? own_receive_.get() : lent_receive)),
      send_(static_cast<unsigned char*>(own_send_  ? own_send_.get()
                                        : in_place ? receive_
                                                   : lent_send)) {}

void Payload::set_size(std::size_t bytes) {
    bytes_ = bytes;
    stride_ = stride_of(bytes, layout_);
}

std::uint64_t Payload::poisoned_number() {
    std::uint64_t number = 0;
    std::memset(&number, poison_byte, sizeof number);
    return number;
}

void Payload::expect(int src, int dst, std::int64_t message, Content content) {
    expected_.assign(bytes_, poison_byte);
    if (content == Content::untouched) return;
    write_message(expected_, src, dst, message);
    if (content == Content::sum)
        for (unsigned char& byte : expected_) byte = static_cast<unsigned char>((byte & small_mask) + poison_byte);
    if (content == Content::sum64) {
        std::uint64_t number = 0;
        std::memcpy(&number, expected_.data(), sizeof number);
        number += poisoned_number();
        std::memcpy(expected_.data(), &number, sizeof number);
    }
}

void Payload::fill(int slot, int src, int dst, std::int64_t message, bool small) {
    expect(src, dst, message, Content::message);
    if (small)
        for (unsigned char& byte : expected_) byte &= small_mask;
    memory_.write(send_slot(slot), expected_.data(), bytes_);
}

void Payload::poison(int slot, bool at_leader) {
    expected_.assign(bytes_, at_leader ? leader_poison_byte : poison_byte);
    memory_.write(receive_slot(slot), expected_.data(), bytes_);
}

std::optional<std::size_t> Payload::damage(int slot, int src, int dst, std::int64_t message, Content content) {
    expect(src, dst, message, content);
    found_.resize(bytes_);
    memory_.read(found_.data(), receive_slot(slot), bytes_);
    const auto wrong = std::mismatch(expected_.begin(), expected_.end(), found_.begin());
    if (wrong.first == expected_.end()) return std::nullopt;
    return static_cast<std::size_t>(wrong.first - expected_.begin());
}

}  // namespace fablint
