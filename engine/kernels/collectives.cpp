// Collectives of all ranks, as osu_barrier, osu_bcast, osu_allreduce, osu_allgather, osu_alltoall: every call is a
// sample, every rank takes its own time, and before each call all meet in a barrier that nobody times.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/kernel.hpp"

namespace fablint {

namespace {

class Collective : public Kernel {
  public:
    bool one_by_one() const override { return true; }
    void align(const End& end) override { end.transport.barrier(); }
    void lead(const End& end, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) call(end);
    }
    void follow(const End& end, std::int64_t repetitions) override { lead(end, repetitions); }

  protected:
    static constexpr int everybody = -1;  // where a message has no single sender or receiver

    virtual void call(const End& end) = 0;

    // What `src` sent to `dst` (perhaps everybody) must be in that receive slot.
    static void check_slot(const End& end, int slot, int src, int dst, std::int64_t message,
                           std::vector<Damage>& damages) {
        const auto offset = end.payload.damage(slot, src, dst, message);
        if (offset) damages.push_back({src, end.rank, end.bytes, message, *offset});
    }
};

// Nothing arrives, so --validate finds nothing: that nobody leaves before all have come cannot be seen from inside.
class Barrier : public Collective {
  public:
    void fill(const End&, bool, std::int64_t) override {}
    void check(const End&, bool, std::int64_t, std::vector<Damage>&) override {}

  private:
    void call(const End& end) override { end.transport.barrier(); }
};

// From rank 0, which sends from its send slot; the others receive into their receive slot.
class Broadcast : public Collective {
  public:
    void fill(const End& end, bool leads, std::int64_t first) override {
        if (end.rank == root) end.payload.fill(0, root, everybody, first);
        end.payload.poison(0, leads);
    }
    void check(const End& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        if (end.rank != root) check_slot(end, 0, root, everybody, first, damages);
    }

  private:
    static constexpr int root = 0;

    void call(const End& end) override {
        end.transport.broadcast(root, end.rank == root ? end.payload.send_slot(0) : end.payload.receive_slot(0),
                                end.bytes);
    }
};

// One slot for every rank, without gaps: what MPI_Allgather and MPI_Alltoall expect.
class AllSlots : public Collective {
  public:
    int slots(int, int, int ranks) const override { return ranks; }
    bool dense() const override { return true; }
};

class AllGather : public AllSlots {
  public:
    void fill(const End& end, bool leads, std::int64_t first) override {
        end.payload.fill(0, end.rank, everybody, first);
        for (int rank = 0; rank < end.ranks; ++rank) end.payload.poison(rank, leads);
    }
    void check(const End& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        for (int src = 0; src < end.ranks; ++src) check_slot(end, src, src, everybody, first, damages);
    }

  private:
    void call(const End& end) override {
        end.transport.all_gather(end.payload.send_slot(0), end.payload.receive_slot(0), end.bytes);
    }
};

class AllToAll : public AllSlots {
  public:
    void fill(const End& end, bool leads, std::int64_t first) override {
        for (int rank = 0; rank < end.ranks; ++rank) {
            end.payload.fill(rank, end.rank, rank, first);
            end.payload.poison(rank, leads);
        }
    }
    void check(const End& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        for (int src = 0; src < end.ranks; ++src) check_slot(end, src, src, end.rank, first, damages);
    }

  private:
    void call(const End& end) override {
        end.transport.all_to_all(end.payload.send_slot(0), end.payload.receive_slot(0), end.bytes);
    }
};

// Rank r contributes (r + k + message) mod 7 to element k. All partial sums are whole numbers below 2^24 for up to 2.7
// million ranks, so floats add them exactly, in whatever order; and they depend on k mod 7 alone.
class AllReduce : public Collective {
  public:
    void fill(const End& end, bool leads, std::int64_t first) override {
        std::array<float, cycle> contribution{};
        for (std::int64_t k = 0; k < cycle; ++k)
            contribution[static_cast<std::size_t>(k)] = static_cast<float>((end.rank + k + first) % cycle);
        repeat(contribution, end.bytes);
        end.payload.memory().write(end.payload.send_slot(0), expected_.data(), end.bytes);
        end.payload.poison(0, leads);
    }
    void check(const End& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        std::array<float, cycle> sums{};
        for (std::int64_t k = 0; k < cycle; ++k)
            sums[static_cast<std::size_t>(k)] = static_cast<float>(sum(end.ranks, k + first));
        repeat(sums, end.bytes);
        found_.resize(end.bytes);
        end.payload.memory().read(found_.data(), end.payload.receive_slot(0), end.bytes);
        // As bytes: -0 and 0 are equal floats.
        const auto* expected = reinterpret_cast<const unsigned char*>(expected_.data());
        const auto wrong = std::mismatch(found_.begin(), found_.end(), expected);
        if (wrong.first == found_.end()) return;
        const auto offset = static_cast<std::size_t>(wrong.first - found_.begin());
        damages.push_back({everybody, end.rank, end.bytes, first, offset});
    }

  private:
    static constexpr std::int64_t cycle = 7;

    void call(const End& end) override {
        end.transport.sum(end.payload.send_slot(0), end.payload.receive_slot(0), end.bytes / sizeof(float));
    }

    // Of (r + shift) mod 7 over the ranks: whole cycles, and what is left of one.
    static std::int64_t sum(std::int64_t ranks, std::int64_t shift) {
        std::int64_t total = ranks / cycle * (cycle * (cycle - 1) / 2);
        for (std::int64_t r = 0; r < ranks % cycle; ++r) total += (r + shift) % cycle;
        return total;
    }

    void repeat(const std::array<float, cycle>& values, std::size_t bytes) {
        expected_.resize(bytes / sizeof(float));
        for (std::size_t k = 0; k < expected_.size(); ++k) expected_[k] = values[k % values.size()];
    }

    std::vector<float> expected_;
    std::vector<unsigned char> found_;
};

}  // namespace

std::unique_ptr<Kernel> make_barrier(const RowOptions&) { return std::make_unique<Barrier>(); }

std::unique_ptr<Kernel> make_bcast(const RowOptions&) { return std::make_unique<Broadcast>(); }

std::unique_ptr<Kernel> make_allreduce(const RowOptions&) { return std::make_unique<AllReduce>(); }

std::unique_ptr<Kernel> make_allgather(const RowOptions&) { return std::make_unique<AllGather>(); }

std::unique_ptr<Kernel> make_alltoall(const RowOptions&) { return std::make_unique<AllToAll>(); }

}  // namespace fablint
