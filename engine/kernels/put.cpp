#include "kernels/one_sided_kernel.hpp"
#include "transports/mpi_window.hpp"

namespace fablint {

namespace {

struct Put : Writes<false, Content::message> {
    static void perform(const Access& access) {
        access.window.access_put(access.peer, 0, access.payload.sends(0, access.messages), access.bytes);
    }
};

// A window of puts in each direction at once, as osu_put_bibw. It ends when the puts of this end are complete and those
// of the peer have arrived.
class BidirectionalPut : public OneSidedKernel<Put> {
  public:
    BidirectionalPut() : OneSidedKernel<Put>(true) {}
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        const Access access(end);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            access.epochs.expose(access.peer);
            perform(access);
            access.epochs.unexpose(access.peer);
        }
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override { lead(end, repetitions); }
};

}  // namespace

std::unique_ptr<Kernel> make_put_latency(const KernelOptions& options) { return make_one_sided<Put>(options); }

std::unique_ptr<Kernel> make_put_bandwidth(const KernelOptions& options) { return make_one_sided<Put>(options); }

std::unique_ptr<Kernel> make_put_bibandwidth(const KernelOptions& options) {
    refuse_posts_that_wait(options.sync);
    return std::make_unique<BidirectionalPut>();
}

}  // namespace fablint
