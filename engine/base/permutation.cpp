#include "base/permutation.hpp"

namespace fablint {

namespace {
constexpr int feistel_rounds = 4;
}

std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(a ^ mix(b)); }

Permutation::Permutation(std::uint64_t n, std::uint64_t seed) : n_(n), seed_(seed), half_bits_(1) {
    while ((std::uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
}

std::uint64_t Permutation::forward(std::uint64_t x) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = x >> half_bits_;
    std::uint64_t right = x & mask;
    for (int round = 0; round < feistel_rounds; ++round) {
        const std::uint64_t next = left ^ (mix(seed_ + static_cast<std::uint64_t>(round), right) & mask);
        left = right;
        right = next;
    }
    return (left << half_bits_) | right;
}

std::uint64_t Permutation::backward(std::uint64_t y) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = y >> half_bits_;
    std::uint64_t right = y & mask;
    for (int round = feistel_rounds - 1; round >= 0; --round) {
        const std::uint64_t previous = right ^ (mix(seed_ + static_cast<std::uint64_t>(round), left) & mask);
        right = left;
        left = previous;
    }
    return (left << half_bits_) | right;
}

std::uint64_t Permutation::image(std::uint64_t x) const {
    do x = forward(x);
    while (x >= n_);
    return x;
}

std::uint64_t Permutation::preimage(std::uint64_t y) const {
    do y = backward(y);
    while (y >= n_);
    return y;
}

}  // namespace fablint
