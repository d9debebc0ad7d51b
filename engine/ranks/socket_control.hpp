// Control messages over TCP, for ranks that no MPI library connects.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ranks/control_channel.hpp"
#include "ranks/liveness.hpp"
#include "ranks/rendezvous.hpp"
#include "sockets/tcp_listener.hpp"

namespace fablint {

// A connection carries the messages of one direction between two ranks: the sender connects before its first message,
// so that two ranks never connect to each other at the same time.
class SocketControl : public ControlChannel {
  public:
    // Collective: returns when all ranks have joined. Throws an Error.
    explicit SocketControl(const RendezvousOptions& options);

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(joined_.hosts.size()); }
    std::string host_name() const override { return joined_.hosts[static_cast<std::size_t>(rank_)]; }
    void send(int to, int tag, const void* data, std::size_t bytes) override;
    void receive(int from, int tag, void* data, std::size_t bytes, const Idle& idle) override;
    void exchange(int to, const void* sent, int from, void* received, std::size_t bytes, int tag,
                  const Idle& idle) override;
    bool wakes_on_arrival() const override { return true; }
    int sender_of_arrived(int from, int tag) override;
    void set_numbers(std::vector<int> numbers) override { numbers_ = std::move(numbers); }
    void on_failure(std::function<void(const Failure&)> handler) override;
    void announce(int rank, const std::string& reason) override;
    [[noreturn]] void abort(int status) override;

  private:
    struct Message {
        int tag;
        std::string content;
    };
    // The messages of one sender.
    struct Incoming {
        Socket socket;
        std::string end;  // why the connection has ended; empty while it has not
        std::string unread;
        std::deque<Message> messages;
    };

    void accept(double limit_s);
    bool read(Incoming& incoming);
    std::deque<Message>::iterator find(Incoming& incoming, int tag);
    const Socket& connection_to(int to);
    void end(const Failure& failure);
    int number(int rank) const { return numbers_.empty() ? rank : numbers_[static_cast<std::size_t>(rank)]; }
    [[noreturn]] void give_up(int rank, const std::string& reason);

    int rank_;
    std::vector<LocalAddress> own_;
    TcpListener listener_;
    JoinedRanks joined_;
    std::vector<Incoming> incoming_;  // by rank
    std::vector<int> numbers_;        // of ranks in reports
    std::map<int, Socket> outgoing_;
    std::unique_ptr<Liveness> liveness_;
};

}  // namespace fablint
