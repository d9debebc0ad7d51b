// A seeded permutation of 0..n-1 without memory: each rank computes its own image, for any n.
#pragma once

#include <cstdint>

namespace fablint {

// A 64-bit hash: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x);
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

// A four-round Feistel network over the next even power of two, walked until it lands below n (Black and Rogaway,
// CT-RSA 2002). At most four steps on average; invertible.
class Permutation {
  public:
    Permutation(std::uint64_t n, std::uint64_t seed);
    std::uint64_t image(std::uint64_t x) const;     // requires x < n
    std::uint64_t preimage(std::uint64_t y) const;  // requires y < n

  private:
    std::uint64_t forward(std::uint64_t x) const;
    std::uint64_t backward(std::uint64_t y) const;

    std::uint64_t n_;
    std::uint64_t seed_;
    int half_bits_;
};

}  // namespace fablint
