// Post, start, complete and wait as messages of one byte, for libraries that have no such synchronisation. The origin
// sends the message that ends its access after its operations are complete at the target.
#pragma once

#include "messaging/transport.hpp"

namespace fablint {

class MessageEpochs : public Epochs {
  public:
    explicit MessageEpochs(Transport& transport) : transport_(transport) {}
    void open(int peer) override { receive(peer); }
    void close(int peer) { send(peer); }  // the end of the origin's access
    void expose(int peer) override { send(peer); }
    void unexpose(int peer) override { receive(peer); }

  private:
    void send(int peer) { transport_.send(peer, &byte_, 1); }
    void receive(int peer) { transport_.receive(peer, &byte_, 1); }

    Transport& transport_;
    char byte_ = 0;
};

}  // namespace fablint
