#include "../kernel.hpp"

namespace fablint {

namespace {

// Ping-pong, as osu_latency: the leader sends, the follower answers with as many bytes.
class Latency : public Kernel {
  public:
    Quantity quantity() const override { return Quantity::latency; }
    bool answered() const override { return true; }
    int messages(int) const override { return 2; }
    void lead(const End& end, std::int64_t repetitions) const override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.transport.send(end.peer, end.payload.send_slot(0), end.bytes);
            end.transport.receive(end.peer, end.payload.receive_slot(0), end.bytes);
        }
    }
    void follow(const End& end, std::int64_t repetitions) const override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.transport.receive(end.peer, end.payload.receive_slot(0), end.bytes);
            end.transport.send(end.peer, end.payload.send_slot(0), end.bytes);
        }
    }
};

}  // namespace

const Kernel& latency_kernel() {
    static const Latency kernel;
    return kernel;
}

}  // namespace fablint
