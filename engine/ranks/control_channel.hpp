// Control messages between the ranks of a run: what RankGroup is built upon. MPI carries them, or sockets.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fablint {

// A rank that cannot take part any more.
struct Failure {
    int rank;
    std::string reason;
    bool reported;  // another rank has printed it
};

// Messages of one sender with one tag arrive in order.
class ControlChannel {
  public:
    // Called while a message has not arrived. Returns for how long the channel may sleep before it looks again, s.
    using Idle = std::function<double()>;
    static constexpr int any_rank = -1;

    virtual ~ControlChannel() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual std::string host_name() const = 0;  // of this rank

    virtual void send(int to, int tag, const void* data, std::size_t bytes) = 0;
    // Waits for a message of that length. Without `idle` the channel waits as it is fastest.
    virtual void receive(int from, int tag, void* data, std::size_t bytes, const Idle& idle) = 0;
    // Sends a message and receives one of the same length and tag, also where every rank does so at once.
    virtual void exchange(int to, const void* sent, int from, void* received, std::size_t bytes, int tag,
                          const Idle& idle) = 0;
    // Does a rank that sleeps in receive() wake when its message arrives? Otherwise it wakes when the sleep is over.
    virtual bool wakes_on_arrival() const { return false; }
    // The sender of a message with that tag that has arrived from `from`, which may be any_rank; -1 if there is none.
    virtual int sender_of_arrived(int from, int tag) = 0;

    // The numbers under which ranks are reported, by rank; empty: their own.
    virtual void set_numbers(std::vector<int> /*numbers*/) {}

    // Where no launcher ends the other ranks: `handler` is called, from another thread, when a rank has failed. An
    // empty handler stands for the first one.
    virtual void on_failure(std::function<void(const Failure&)> /*handler*/) {}
    // This process ends because of that rank: the other ranks must not take this one for the failed rank.
    virtual void announce(int /*rank*/, const std::string& /*reason*/) {}
    // Ends this process at once, and with it the run.
    [[noreturn]] virtual void abort(int status) = 0;
};

}  // namespace fablint
