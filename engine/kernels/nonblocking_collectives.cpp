// Non-blocking collectives, as osu_ibcast and so on: the call is started, and completed after a computation that is as
// long as the call alone. Three rows of one kernel make OSU's columns: without computation (--compute none), during a
// computation, and the computation alone.
#include <map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "kernels/collective.hpp"

namespace fablint {

namespace {

using Length = std::pair<MpiCollective, std::size_t>;  // of a message, bytes

// Seconds of a call without computation, of this rank: the same for all rows of a run.
std::map<Length, double>& lengths() {
    static std::map<Length, double> lengths;
    return lengths;
}

class NonBlocking : public Collective {
  public:
    NonBlocking(MpiCollective collective, std::unique_ptr<Kernel> contents, const KernelOptions& options)
        : Collective(contents->traits().slot_per_rank),
          collective_(collective),
          contents_(std::move(contents)),
          calls_(options.compute != "alone"),
          computes_(options.compute == "alone" || options.compute == "during"),
          tests_(calls_ ? options.tests : 0) {}

    void align(const Endpoint& end) override {
        if (computes_ && end.bytes != bytes_) length_s_ = length(end);
        bytes_ = end.bytes;
        collectives(end).barrier();
    }
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        if (calls_) contents_->fill(end, leads, first);
    }
    void check(const Endpoint& end, bool leads, std::int64_t first, std::vector<Damage>& damages) override {
        if (calls_) contents_->check(end, leads, first, damages);
    }

  private:
    static constexpr int untimed = 10;
    static constexpr int timed = 50;

    void call(const Endpoint& end) override {
        if (calls_) start(end);
        if (computes_) compute(end);
        if (calls_) end.transport.complete();
    }
    void start(const Endpoint& end) {
        end.transport.mpi_collectives()->start(collective_, end.payload.send_slot(0), end.payload.receive_slot(0),
                                               end.bytes);
    }
    void compute(const Endpoint& end) {
        if (tests_ == 0) return spin(length_s_);
        for (int test = 0; test < tests_; ++test) {
            spin(length_s_ / tests_);
            end.transport.mpi_collectives()->probe();
        }
    }
    static void spin(double seconds) {
        const Clock& clock = wall_clock();
        for (const double until = clock.now() + seconds; clock.now() < until;) continue;
    }
    // Measures the call alone where no row has done so; all ranks do it, since all have the same rows and sizes.
    double length(const Endpoint& end) {
        const auto known = lengths().find({collective_, end.bytes});
        if (known != lengths().end()) return known->second;
        double total_s = 0.0;
        for (int i = 0; i < untimed + timed; ++i) {
            collectives(end).barrier();
            const double begin = wall_clock().now();
            start(end);
            end.transport.complete();
            if (i >= untimed) total_s += wall_clock().now() - begin;
        }
        return lengths()[{collective_, end.bytes}] = total_s / timed;
    }

    const MpiCollective collective_;
    const std::unique_ptr<Kernel> contents_;  // what the messages hold
    const bool calls_;
    const bool computes_;
    const int tests_;
    std::size_t bytes_ = static_cast<std::size_t>(-1);
    double length_s_ = 0.0;
};

}  // namespace

// The kernel that has the contents of its messages, and the call.
#define NON_BLOCKING(name, contents, collective)                                                            \
    std::unique_ptr<Kernel> make_##name(const KernelOptions& options) {                                     \
        return std::make_unique<NonBlocking>(MpiCollective::collective, make_##contents(options), options); \
    }
NON_BLOCKING(ibarrier, barrier, barrier)
NON_BLOCKING(ibcast, bcast, broadcast)
NON_BLOCKING(iallreduce, allreduce, all_reduce)
NON_BLOCKING(ireduce, reduce, reduce)
NON_BLOCKING(ireduce_scatter, reduce_scatterv, reduce_scatter)
NON_BLOCKING(ireduce_scatter_block, reduce_scatter_block, reduce_scatter_block)
NON_BLOCKING(iallgather, allgather, all_gather)
NON_BLOCKING(iallgatherv, allgatherv, all_gatherv)
NON_BLOCKING(ialltoall, alltoall, all_to_all)
NON_BLOCKING(ialltoallv, alltoallv, all_to_allv)
NON_BLOCKING(ialltoallw, alltoallw, all_to_allw)
NON_BLOCKING(igather, gather, gather)
NON_BLOCKING(igatherv, gatherv, gatherv)
NON_BLOCKING(iscatter, scatter, scatter)
NON_BLOCKING(iscatterv, scatterv, scatterv)

}  // namespace fablint
