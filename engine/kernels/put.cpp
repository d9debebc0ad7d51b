#include "kernels/one_sided_kernel.hpp"
#include "transports/mpi_window.hpp"

namespace fablint {

namespace {

struct Put : Writes<false, Content::message> {
    static void perform(const Access& access) {
        access.remote.access_put(access.peer, 0, access.payload.sends(0, access.window), access.bytes);
    }
};

// A window of puts in each direction at once, as osu_put_bibw: over when this end's are and the peer's have arrived.
class PutBothWays : public OneSidedKernel<Put> {
  public:
    void lead(const End& end, std::int64_t repetitions) override {
        const Access access(end);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            access.remote.expose(access.peer);
            perform(access);
            access.remote.unexpose(access.peer);
        }
    }
    void follow(const End& end, std::int64_t repetitions) override { lead(end, repetitions); }

  protected:
    bool both_access() const override { return true; }
};

}  // namespace

std::unique_ptr<Kernel> make_put_latency(const RowOptions& row) { return make_one_sided<Put>(row); }

std::unique_ptr<Kernel> make_put_bandwidth(const RowOptions& row) { return make_one_sided<Put>(row); }

std::unique_ptr<Kernel> make_put_bibandwidth(const RowOptions& row) {
    refuse_posts_that_wait(row.sync);
    return std::make_unique<PutBothWays>();
}

}  // namespace fablint
