// Collectives that MPI alone has: with the root rank 0, and of vectors. As osu_reduce, osu_gather, osu_alltoallv and so
// on.
#include <vector>

#include "kernels/collective.hpp"

namespace fablint {

namespace {

void run(const Endpoint& end, MpiCollective collective) {
    end.transport.mpi_collectives()->run(collective, end.payload.send_slot(0), end.payload.receive_slot(0), end.bytes);
}

class Reduce : public Sum {
  public:
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        if (end.rank == root_rank) check_sum(end, end.bytes, 0, first, damages);
    }

  private:
    void call(const Endpoint& end) override { run(end, MpiCollective::reduce); }
};

// The size is that of all parts together. Where it does not divide evenly, the first ranks receive one element more
// each; parts of equal length leave the last elements out.
class ReduceScatterOfAll : public Sum {
  public:
    explicit ReduceScatterOfAll(bool has_equal_parts) : has_equal_parts_(has_equal_parts) {}
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        const auto elements = static_cast<std::int64_t>(end.bytes / sizeof(float));
        const std::int64_t each = elements / end.ranks;
        const std::int64_t more = has_equal_parts_ ? 0 : elements % end.ranks;
        const std::int64_t before = end.rank * each + std::min<std::int64_t>(end.rank, more);
        const auto bytes = static_cast<std::size_t>(each + (end.rank < more ? 1 : 0)) * sizeof(float);
        if (bytes > 0) check_sum(end, bytes, before, first, damages);
    }

  private:
    void call(const Endpoint& end) override {
        run(end, has_equal_parts_ ? MpiCollective::reduce_scatter_block : MpiCollective::reduce_scatter);
    }

    const bool has_equal_parts_;
};

// Which parts a rank sends and receives.
enum class Parts { to_root, from_root, to_all, to_each };

// Parts of one size: those of vectors have the same places as those that are none, as in OSU.
class PartsOfRanks : public AllSlots {
  public:
    PartsOfRanks(MpiCollective collective, Parts parts) : collective_(collective), parts_(parts) {}
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        for (int rank = 0; rank < end.ranks; ++rank) end.payload.poison(rank, leads);
        if (parts_ == Parts::from_root && end.rank != root_rank) return;
        const bool sends_to_each = parts_ == Parts::from_root || parts_ == Parts::to_each;
        for (int rank = 0; rank < (sends_to_each ? end.ranks : 1); ++rank)
            end.payload.fill(rank, end.rank, sends_to_each ? rank : all_ranks, first);
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        if (parts_ == Parts::from_root) {
            check_slot(end, 0, root_rank, end.rank, first, damages);
            return;
        }
        if (parts_ == Parts::to_root && end.rank != root_rank) return;
        const int dst = parts_ == Parts::to_each ? end.rank : all_ranks;
        for (int src = 0; src < end.ranks; ++src) check_slot(end, src, src, dst, first, damages);
    }

  private:
    void call(const Endpoint& end) override { run(end, collective_); }

    const MpiCollective collective_;
    const Parts parts_;
};

std::unique_ptr<Kernel> parts_of_ranks(MpiCollective collective, Parts parts) {
    return std::make_unique<PartsOfRanks>(collective, parts);
}

}  // namespace

std::unique_ptr<Kernel> make_reduce(const KernelOptions&) { return std::make_unique<Reduce>(); }

std::unique_ptr<Kernel> make_reduce_scatterv(const KernelOptions&) {
    return std::make_unique<ReduceScatterOfAll>(false);
}

std::unique_ptr<Kernel> make_reduce_scatter_block(const KernelOptions&) {
    return std::make_unique<ReduceScatterOfAll>(true);
}

std::unique_ptr<Kernel> make_gather(const KernelOptions&) {
    return parts_of_ranks(MpiCollective::gather, Parts::to_root);
}

std::unique_ptr<Kernel> make_gatherv(const KernelOptions&) {
    return parts_of_ranks(MpiCollective::gatherv, Parts::to_root);
}

std::unique_ptr<Kernel> make_scatter(const KernelOptions&) {
    return parts_of_ranks(MpiCollective::scatter, Parts::from_root);
}

std::unique_ptr<Kernel> make_scatterv(const KernelOptions&) {
    return parts_of_ranks(MpiCollective::scatterv, Parts::from_root);
}

std::unique_ptr<Kernel> make_allgatherv(const KernelOptions&) {
    return parts_of_ranks(MpiCollective::all_gatherv, Parts::to_all);
}

std::unique_ptr<Kernel> make_alltoallv(const KernelOptions&) {
    return parts_of_ranks(MpiCollective::all_to_allv, Parts::to_each);
}

std::unique_ptr<Kernel> make_alltoallw(const KernelOptions&) {
    return parts_of_ranks(MpiCollective::all_to_allw, Parts::to_each);
}

}  // namespace fablint
