// Collectives that NCCL has as well: as osu_barrier, osu_bcast, osu_allreduce, osu_allgather and osu_alltoall.
#include <vector>

#include "kernels/collective.hpp"

namespace fablint {

namespace {

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
        if (end.rank == root_rank) end.payload.fill(0, root_rank, all_ranks, first);
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        if (end.rank != root_rank) check_slot(end, 0, root_rank, all_ranks, first, damages);
    }

  private:
    void call(const Endpoint& end) override {
        collectives(end).broadcast(root_rank, end.rank == root_rank ? end.payload.send_slot(0) : nullptr,
                                   end.payload.receive_slot(0), end.bytes);
    }
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

class AllReduce : public Sum {
  public:
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        check_sum(end, end.bytes, 0, first, damages);
    }

  private:
    void call(const Endpoint& end) override {
        collectives(end).sum(end.payload.send_slot(0), end.payload.receive_slot(0), end.bytes / sizeof(float));
    }
};

// A slot of the data is the part of a rank; its sum arrives in one slot.
class ReduceScatter : public AllSlots {
  public:
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        end.payload.poison(0, leads);
        for (int part = 0; part < end.ranks; ++part)
            addends_.write(end, end.payload.send_slot(part), end.bytes, first_element(end, part), first);
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        if (const auto offset = addends_.damage(end, part_, end.bytes, first_element(end, end.rank), first))
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
