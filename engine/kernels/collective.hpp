// Collectives of all ranks, as OSU times them: every call is a sample, every rank takes its own time, and an untimed
// barrier precedes each call. With a batch, a sample is a barrier and then the calls of the batch, one after another,
// as in nccl-tests.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "kernels/kernel.hpp"

namespace fablint {

class Collective : public Kernel {
  public:
    void align(const Endpoint& end) override { collectives(end).barrier(); }
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) call(end);
        end.transport.complete();
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override { lead(end, repetitions); }

  protected:
    static constexpr int all_ranks = -1;  // where a message has no single sender or receiver

    explicit Collective(bool slot_per_rank = false) : Kernel(call_traits(slot_per_rank)) {}

    static Collectives& collectives(const Endpoint& end) { return *end.transport.collectives(); }

    virtual void call(const Endpoint& end) = 0;

    // Checks that the slot holds the message of `src` to `dst`, which may be all_ranks.
    static void check_slot(const Endpoint& end, int slot, int src, int dst, std::int64_t message,
                           std::vector<Damage>& damages) {
        const auto offset = end.payload.damage(slot, src, dst, message);
        if (offset) damages.push_back({src, end.rank, end.bytes, message, *offset});
    }

  private:
    static KernelTraits call_traits(bool slot_per_rank) {
        KernelTraits traits;
        traits.one_by_one = true;
        traits.slot_per_rank = slot_per_rank;
        return traits;
    }
};

// One slot for every rank, without gaps: what MPI_Allgather and MPI_Alltoall expect.
class AllSlots : public Collective {
  public:
    AllSlots() : Collective(true) {}
};

// What ranks contribute to a sum: rank r contributes (r + k + message) mod 7 to element k. All partial sums are
// integers below 2^24 for up to 2.7 million ranks: sums of floats are exact in any order. They depend on k mod 7 only.
class Addends {
  public:
    // Writes so many bytes of elements, from number `first` on, that a rank contributes.
    void write(const Endpoint& end, void* data, std::size_t bytes, std::int64_t first, std::int64_t message) {
        repeat(bytes, [&](std::int64_t k) { return (end.rank + first + k + message) % cycle; });
        end.payload.memory().write(data, values_.data(), bytes);
    }
    // The offset of the first wrong byte in a sum, whose first element has number `first`.
    std::optional<std::size_t> damage(const Endpoint& end, const void* data, std::size_t bytes, std::int64_t first,
                                      std::int64_t message) {
        repeat(bytes, [&](std::int64_t k) { return sum(end.ranks, first + k + message); });
        found_.resize(bytes);
        end.payload.memory().read(found_.data(), data, bytes);
        // Compared as bytes, since -0 and 0 are equal floats.
        const auto* expected = reinterpret_cast<const unsigned char*>(values_.data());
        const auto wrong = std::mismatch(found_.begin(), found_.end(), expected);
        if (wrong.first == found_.end()) return std::nullopt;
        return static_cast<std::size_t>(wrong.first - found_.begin());
    }

  private:
    static constexpr std::int64_t cycle = 7;

    // Sum of (r + shift) mod 7 over the ranks: whole cycles, and the rest of one.
    static std::int64_t sum(std::int64_t ranks, std::int64_t shift) {
        std::int64_t total = ranks / cycle * (cycle * (cycle - 1) / 2);
        for (std::int64_t r = 0; r < ranks % cycle; ++r) total += (r + shift) % cycle;
        return total;
    }

    template <typename Value>
    void repeat(std::size_t bytes, const Value& value) {
        std::array<float, cycle> values{};
        for (std::int64_t k = 0; k < cycle; ++k) values[static_cast<std::size_t>(k)] = static_cast<float>(value(k));
        values_.resize(bytes / sizeof(float));
        for (std::size_t k = 0; k < values_.size(); ++k) values_[k] = values[k % values.size()];
    }

    std::vector<float> values_;
    std::vector<unsigned char> found_;
};

// Every rank contributes a whole message to a sum.
class Sum : public Collective {
  public:
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        end.payload.poison(0, leads);
        addends_.write(end, end.payload.send_slot(0), end.bytes, 0, first);
    }

  protected:
    // Checks so many bytes of the sum that arrived, whose first element has number `begin`.
    void check_sum(const Endpoint& end, std::size_t bytes, std::int64_t begin, std::int64_t message,
                   std::vector<Damage>& damages) {
        if (const auto offset = addends_.damage(end, end.payload.receive_slot(0), bytes, begin, message))
            damages.push_back({all_ranks, end.rank, end.bytes, message, *offset});
    }

  private:
    Addends addends_;
};

}  // namespace fablint
