// Reports connections that an MPI library requests in vain while the ranks start.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace fablint {

// A thread that looks for requests without an answer until the ranks have started, and prints a line `unconnected:`
// once. Most MPI libraries print nothing, or after minutes: the front end ends the start before, and shows this line.
class StartWatch {
  public:
    StartWatch();
    ~StartWatch() { end(); }
    StartWatch(const StartWatch&) = delete;
    StartWatch& operator=(const StartWatch&) = delete;

    void end();  // the ranks have started

  private:
    void watch();

    std::mutex mutex_;
    std::condition_variable ended_;
    bool over_ = false;
    std::thread thread_;
};

}  // namespace fablint
