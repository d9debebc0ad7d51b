#include "payload.hpp"

#include <algorithm>
#include <cstring>

#include "permutation.hpp"

namespace fablint {

namespace {
constexpr std::size_t cache_line = 64;
constexpr std::size_t page = 4096;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }
}  // namespace

std::size_t Payload::stride_of(std::size_t bytes) {
    return std::max(cache_line, bytes < page ? round_up(bytes, cache_line) : round_up(bytes, page));
}

std::size_t Payload::footprint(std::size_t largest, int slots) {
    return 2 * stride_of(largest) * static_cast<std::size_t>(slots);
}

Payload::Payload(Memory& memory, std::size_t largest, int slots) : memory_(memory) {
    const std::size_t half = footprint(largest, slots) / 2;
    send_ = static_cast<unsigned char*>(memory_.allocate(half));
    receive_ = static_cast<unsigned char*>(memory_.allocate(half));
    set_size(largest);
}

Payload::~Payload() {
    memory_.release(send_);
    memory_.release(receive_);
}

void Payload::set_size(std::size_t bytes) {
    bytes_ = bytes;
    stride_ = stride_of(bytes);
}

void Payload::pattern(std::vector<unsigned char>& bytes, int src, int dst, std::int64_t message) const {
    bytes.resize(bytes_);
    const std::uint64_t key =
        mix(mix(static_cast<std::uint64_t>(src), static_cast<std::uint64_t>(dst)), static_cast<std::uint64_t>(message));
    for (std::size_t at = 0; at < bytes_; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = mix(key, at);
        std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes_ - at));
    }
}

void Payload::fill(int slot, int src, int dst, std::int64_t message) {
    pattern(expected_, src, dst, message);
    memory_.write(send_slot(slot), expected_.data(), bytes_);
}

void Payload::poison(int slot) {
    found_.assign(bytes_, 0xee);
    memory_.write(receive_slot(slot), found_.data(), bytes_);
}

std::optional<std::size_t> Payload::damage(int slot, int src, int dst, std::int64_t message) {
    pattern(expected_, src, dst, message);
    found_.resize(bytes_);
    memory_.read(found_.data(), receive_slot(slot), bytes_);
    const auto wrong = std::mismatch(expected_.begin(), expected_.end(), found_.begin());
    if (wrong.first == expected_.end()) return std::nullopt;
    return static_cast<std::size_t>(wrong.first - expected_.begin());
}

}  // namespace fablint
