// Detects ranks that end without notice, where no launcher does: a connection of every rank to rank 0.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ranks/control_channel.hpp"
#include "sockets/socket.hpp"

namespace fablint {

// A thread waits for the end of the connections; it does nothing while all ranks live. Rank 0 passes on which rank has
// failed, so that a rank that ends because of the failure is not taken for another failed rank.
class Liveness {
  public:
    using Handler = std::function<void(const Failure&)>;

    // `connections`: of rank 0, to every other rank, by rank; of other ranks, to rank 0.
    Liveness(int rank, std::vector<Socket> connections, Handler handler);
    ~Liveness();  // reports to the other ranks that this rank ends as planned
    Liveness(const Liveness&) = delete;
    Liveness& operator=(const Liveness&) = delete;

    void set_handler(Handler handler);
    void announce(int rank, const std::string& reason);

  private:
    struct Connection {
        int rank;
        Socket socket;
        std::string text;
    };
    void watch();
    void read(Connection& connection);
    void take(Connection& connection, const std::string& line);
    void fail(const Failure& failure);
    void send_to_all(const std::string& line);

    std::vector<Connection> connections_;
    std::mutex mutex_;  // guards handler_
    Handler handler_;
    Socket wake_;  // an eventfd that ends the thread
    std::thread thread_;
};

}  // namespace fablint
