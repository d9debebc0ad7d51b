#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// Every end does the same thing at the same time.
class BothWays : public Kernel {
  public:
    int messages(int window) const override { return window; }
    std::optional<Content> at_leader() const override { return Content::message; }
    void lead(const End& end, std::int64_t repetitions) override { stream(end, repetitions); }
    void follow(const End& end, std::int64_t repetitions) override { stream(end, repetitions); }

  private:
    // Receives first, so that no message is unexpected at an end that is on time.
    void stream(const End& end, std::int64_t repetitions) {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.post_receives();
            end.post_sends();
            end.transport.complete();
        }
    }
};

}  // namespace

// A window in each direction at once, as osu_bibw.
std::unique_ptr<Kernel> make_bibandwidth(const RowOptions&) { return std::make_unique<BothWays>(); }

// One message in each direction at once, as IMB's Sendrecv between two ranks and as bisec_bw: a kernel without a window
// has one message in flight.
std::unique_ptr<Kernel> make_exchange(const RowOptions&) { return std::make_unique<BothWays>(); }

}  // namespace fablint
