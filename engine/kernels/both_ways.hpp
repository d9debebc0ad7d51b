// What `bibandwidth` and `exchange` share: both ends do the same thing at the same time.
#pragma once

#include "../kernel.hpp"

namespace fablint {

class BothWays : public Kernel {
  public:
    bool mutual() const override { return true; }
    bool answered() const override { return true; }
    void lead(const End& end, std::int64_t repetitions) const override { stream(end, repetitions); }
    void follow(const End& end, std::int64_t repetitions) const override { stream(end, repetitions); }

  private:
    // Receives first, so that no message is unexpected at an end that is on time.
    void stream(const End& end, std::int64_t repetitions) const {
        const int window = messages(end.window);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            for (int slot = 0; slot < window; ++slot)
                end.transport.post_receive(end.peer, end.payload.receive_slot(slot), end.bytes);
            for (int slot = 0; slot < window; ++slot)
                end.transport.post_send(end.peer, end.payload.send_slot(slot), end.bytes);
            end.transport.complete();
        }
    }
};

}  // namespace fablint
