#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// A window of messages in one direction, then one byte back, as osu_bw: the time includes the arrival of all messages.
// The acknowledgement is in the message buffers, as in osu_bw: a transport may move no other memory. A hub has a window
// with each of its leaves at once, as in osu_bw_fan_in and osu_bw_fan_out.
class Bandwidth : public Kernel {
  public:
    Bandwidth() : Kernel({}) {}
    void arm(const Endpoint& end, bool leads, std::int64_t repetitions) override {
        leads ? end.expect_acknowledgements(repetitions) : end.expect_windows(repetitions);
    }
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.post_sends();
            end.transport.complete();
            for (const int peer : end.peers) end.transport.receive(peer, end.payload.receive_slot(0), 1);
        }
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.post_receives();
            end.transport.complete();
            for (const int peer : end.peers) end.transport.send(peer, end.payload.send_slot(0), 1);
        }
    }
};

}  // namespace

std::unique_ptr<Kernel> make_bandwidth(const KernelOptions&) { return std::make_unique<Bandwidth>(); }

}  // namespace fablint
