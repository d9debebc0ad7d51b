// Collectives of all ranks, as osu_barrier, osu_bcast, osu_allreduce, osu_allgather and osu_alltoall: every call is a
// sample, every rank takes its own time, and an untimed barrier precedes each call. With a batch, a sample is a barrier
// and then the calls of the batch, one after another, as in nccl-tests.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "kernels/kernel.hpp"

namespace fablint {

namespace {

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

// Nothing arrives: --validate has nothing to check.
class Barrier : public Collective {
  public:
    void fill(const Endpoint&, bool, std::int64_t) override {}
    void check(const Endpoint&, bool, std::int64_t, std::vector<Damage>&) override {}

  private:
    void call(const Endpoint& end) override { collectives(end).barrier(); }
};

// Rank 0 sends from its send slot; the other ranks receive into their receive slot.
class Broadcast : public Collective {
  public:
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        end.payload.poison(0, leads);
        if (end.rank == root) end.payload.fill(0, root, all_ranks, first);
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        if (end.rank != root) check_slot(end, 0, root, all_ranks, first, damages);
    }

  private:
    static constexpr int root = 0;

    void call(const Endpoint& end) override {
        collectives(end).broadcast(root, end.rank == root ? end.payload.send_slot(0) : nullptr,
                                   end.payload.receive_slot(0), end.bytes);
    }
};

// One slot for every rank, without gaps: what MPI_Allgather and MPI_Alltoall expect.
class AllSlots : public Collective {
  public:
    AllSlots() : Collective(true) {}
};

class AllGather : public AllSlots {
  public:
    explicit AllGather(bool in_place) : in_place_(in_place) {}
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        for (int rank = 0; rank < end.ranks; ++rank) end.payload.poison(rank, leads);
        end.payload.fill(in_place_ ? end.rank : 0, end.rank, all_ranks, first);
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        for (int src = 0; src < end.ranks; ++src) check_slot(end, src, src, all_ranks, first, damages);
    }

  private:
    void call(const Endpoint& end) override {
        collectives(end).all_gather(end.payload.send_slot(0), end.payload.receive_slot(0), end.bytes);
    }

    const bool in_place_;
};

class AllToAll : public AllSlots {
  public:
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        for (int rank = 0; rank < end.ranks; ++rank) {
            end.payload.fill(rank, end.rank, rank, first);
            end.payload.poison(rank, leads);
        }
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        for (int src = 0; src < end.ranks; ++src) check_slot(end, src, src, end.rank, first, damages);
    }

  private:
    void call(const Endpoint& end) override {
        collectives(end).all_to_all(end.payload.send_slot(0), end.payload.receive_slot(0), end.bytes);
    }
};

// What ranks contribute to a sum: rank r contributes (r + k + message) mod 7 to element k. All partial sums are
// integers below 2^24 for up to 2.7 million ranks: sums of floats are exact in any order. They depend on k mod 7 only.
class Addends {
  public:
    // Writes the elements from number `first` on that a rank contributes.
    void write(const Endpoint& end, void* data, std::int64_t first, std::int64_t message) {
        repeat(end.bytes, [&](std::int64_t k) { return (end.rank + first + k + message) % cycle; });
        end.payload.memory().write(data, values_.data(), end.bytes);
    }
    // The offset of the first wrong byte in a sum, whose first element has number `first`.
    std::optional<std::size_t> damage(const Endpoint& end, const void* data, std::int64_t first, std::int64_t message) {
        repeat(end.bytes, [&](std::int64_t k) { return sum(end.ranks, first + k + message); });
        found_.resize(end.bytes);
        end.payload.memory().read(found_.data(), data, end.bytes);
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

class AllReduce : public Collective {
  public:
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        end.payload.poison(0, leads);
        addends_.write(end, end.payload.send_slot(0), 0, first);
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        if (const auto offset = addends_.damage(end, end.payload.receive_slot(0), 0, first))
            damages.push_back({all_ranks, end.rank, end.bytes, first, *offset});
    }

  private:
    void call(const Endpoint& end) override {
        collectives(end).sum(end.payload.send_slot(0), end.payload.receive_slot(0), end.bytes / sizeof(float));
    }

    Addends addends_;
};

// A slot of the data is the part of a rank; its sum arrives in one slot.
class ReduceScatter : public AllSlots {
  public:
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        end.payload.poison(0, leads);
        for (int part = 0; part < end.ranks; ++part)
            addends_.write(end, end.payload.send_slot(part), first_element(end, part), first);
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        if (const auto offset = addends_.damage(end, part_, first_element(end, end.rank), first))
            damages.push_back({all_ranks, end.rank, end.bytes, first, *offset});
    }

  private:
    static std::int64_t first_element(const Endpoint& end, int part) {
        return part * static_cast<std::int64_t>(end.bytes / sizeof(float));
    }
    void call(const Endpoint& end) override {
        part_ = collectives(end).reduce_scatter(end.payload.send_slot(0), end.payload.receive_slot(0),
                                                end.bytes / sizeof(float));
    }

    Addends addends_;
    const void* part_ = nullptr;  // sum that arrived
};

}  // namespace

std::unique_ptr<Kernel> make_barrier(const KernelOptions&) { return std::make_unique<Barrier>(); }

std::unique_ptr<Kernel> make_bcast(const KernelOptions&) { return std::make_unique<Broadcast>(); }

std::unique_ptr<Kernel> make_allreduce(const KernelOptions&) { return std::make_unique<AllReduce>(); }

std::unique_ptr<Kernel> make_allgather(const KernelOptions& options) {
    return std::make_unique<AllGather>(options.in_place);
}

std::unique_ptr<Kernel> make_reduce_scatter(const KernelOptions&) { return std::make_unique<ReduceScatter>(); }

std::unique_ptr<Kernel> make_alltoall(const KernelOptions&) { return std::make_unique<AllToAll>(); }

}  // namespace fablint
