// Requests of --serve: what is to be measured next, read from standard input of rank 0 while the ranks wait or measure.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "sockets/socket.hpp"

namespace fablint {

// A request is a block of lines that an empty line ends. The line `end` in place of a request says that no further one
// follows. Where standard input ends without it, the program that wrote the requests has ended: a stop is requested.
class Requests {
  public:
    Requests();
    ~Requests();
    Requests(const Requests&) = delete;
    Requests& operator=(const Requests&) = delete;

    // Waits for the next request; an empty text where there is none: after `end`, a signal, the end of the input, or
    // `idle_limit_s` without a request (0: no limit).
    std::string next(double idle_limit_s);

  private:
    void watch();
    bool take_lines();

    std::mutex mutex_;  // guards complete_ and over_
    std::condition_variable changed_;
    std::deque<std::string> complete_;
    bool over_ = false;
    std::string unread_;  // as the following ones, of the thread
    std::string block_;
    Socket wake_;  // an eventfd that ends the thread
    std::thread thread_;
};

}  // namespace fablint
