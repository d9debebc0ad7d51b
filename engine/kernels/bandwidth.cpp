#include "../kernel.hpp"

namespace fablint {

namespace {

// A window of messages in one direction, then one byte back, as osu_bw: the time runs until all have arrived.
class Bandwidth : public Kernel {
  public:
    Quantity quantity() const override { return Quantity::bandwidth; }
    bool windowed() const override { return true; }
    int messages(int window) const override { return window; }
    void lead(const End& end, std::int64_t repetitions) const override {
        char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            for (int slot = 0; slot < end.window; ++slot)
                end.transport.post_send(end.peer, end.payload.send_slot(slot), end.bytes);
            end.transport.complete();
            end.transport.receive(end.peer, &acknowledgement, 1);
        }
    }
    void follow(const End& end, std::int64_t repetitions) const override {
        const char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            for (int slot = 0; slot < end.window; ++slot)
                end.transport.post_receive(end.peer, end.payload.receive_slot(slot), end.bytes);
            end.transport.complete();
            end.transport.send(end.peer, &acknowledgement, 1);
        }
    }
};

}  // namespace

const Kernel& bandwidth_kernel() {
    static const Bandwidth kernel;
    return kernel;
}

}  // namespace fablint
