#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// Both ends do the same at the same time.
class Bidirectional : public Kernel {
  public:
    Bidirectional() : Kernel(both_receive_traits()) {}
    void arm(const Endpoint& end, bool, std::int64_t repetitions) override { end.expect_windows(repetitions); }
    void lead(const Endpoint& end, std::int64_t repetitions) override { stream(end, repetitions); }
    void follow(const Endpoint& end, std::int64_t repetitions) override { stream(end, repetitions); }

  private:
    // Receives first, so that messages are expected when they arrive.
    void stream(const Endpoint& end, std::int64_t repetitions) {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.post_receives();
            end.post_sends();
            end.transport.complete();
        }
    }
};

}  // namespace

// A window in each direction at once, as osu_bibw.
std::unique_ptr<Kernel> make_bibandwidth(const KernelOptions&) { return std::make_unique<Bidirectional>(); }

// One message in each direction at once, as IMB's Sendrecv between two ranks and as bisec_bw: a kernel without a window
// has one message in flight.
std::unique_ptr<Kernel> make_exchange(const KernelOptions&) { return std::make_unique<Bidirectional>(); }

}  // namespace fablint
