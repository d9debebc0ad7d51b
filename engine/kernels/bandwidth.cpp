#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// A window of messages in one direction, then one byte back, as osu_bw: the time includes the arrival of all messages.
// A hub has a window with each of its leaves at once, as in osu_bw_fan_in and osu_bw_fan_out.
class Bandwidth : public Kernel {
  public:
    Bandwidth() : Kernel({}) {}
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.post_sends();
            end.transport.complete();
            for (const int peer : end.peers) end.transport.receive(peer, &acknowledgement, 1);
        }
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override {
        const char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.post_receives();
            end.transport.complete();
            for (const int peer : end.peers) end.transport.send(peer, &acknowledgement, 1);
        }
    }
};

}  // namespace

std::unique_ptr<Kernel> make_bandwidth(const RowOptions&) { return std::make_unique<Bandwidth>(); }

}  // namespace fablint
