// Some of the ranks, numbered anew: control messages between them pass through the channel of all ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ranks/rank_group.hpp"

namespace fablint {

class RankSubset : public ControlChannel {
  public:
    // `members`: the ranks, in ascending order, with this one. Reports of failures have the new numbers while this
    // object lives; a rank that is no member has the number of a member on its host.
    RankSubset(RankGroup& all, std::vector<int> members);
    ~RankSubset() override;
    RankSubset(const RankSubset&) = delete;
    RankSubset& operator=(const RankSubset&) = delete;

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(members_.size()); }
    std::string host_name() const override { return channel_.host_name(); }
    void send(int to, int tag, const void* data, std::size_t bytes) override;
    void receive(int from, int tag, void* data, std::size_t bytes, const Idle& idle) override;
    void exchange(int to, const void* sent, int from, void* received, std::size_t bytes, int tag,
                  const Idle& idle) override;
    bool wakes_on_arrival() const override { return channel_.wakes_on_arrival(); }
    int sender_of_arrived(int from, int tag) override;
    void on_failure(std::function<void(const Failure&)> handler) override;
    void announce(int rank, const std::string& reason) override;
    [[noreturn]] void abort(int status) override;

  private:
    int member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
    int number(int rank) const { return numbers_[static_cast<std::size_t>(rank)]; }

    ControlChannel& channel_;
    std::vector<int> members_;
    std::vector<int> numbers_;  // of all ranks
    int rank_;
};

}  // namespace fablint
