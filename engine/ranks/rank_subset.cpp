#include "ranks/rank_subset.hpp"

#include <cstdlib>
#include <map>
#include <utility>

namespace fablint {

namespace {

// The number of each of all ranks: its place among the members, or that of a member on its host.
std::vector<int> numbers_of(const RankGroup& all, const std::vector<int>& members) {
    std::vector<int> numbers(static_cast<std::size_t>(all.size()), -1);
    std::map<std::string, int> of_host;
    for (std::size_t place = 0; place < members.size(); ++place) {
        numbers[static_cast<std::size_t>(members[place])] = static_cast<int>(place);
        of_host.emplace(all.host_of(members[place]), static_cast<int>(place));
    }
    for (int rank = 0; rank < all.size(); ++rank) {
        int& number = numbers[static_cast<std::size_t>(rank)];
        const auto neighbour = of_host.find(all.host_of(rank));
        if (number < 0 && neighbour != of_host.end()) number = neighbour->second;
        if (number < 0) number = 0;
    }
    return numbers;
}

}  // namespace

RankSubset::RankSubset(RankGroup& all, std::vector<int> members)
    : channel_(all.control()),
      members_(std::move(members)),
      numbers_(numbers_of(all, members_)),
      rank_(number(all.rank())) {
    channel_.set_numbers(numbers_);
}

RankSubset::~RankSubset() { channel_.set_numbers({}); }

void RankSubset::send(int to, int tag, const void* data, std::size_t bytes) {
    channel_.send(member(to), tag, data, bytes);
}

void RankSubset::receive(int from, int tag, void* data, std::size_t bytes, const Idle& idle) {
    channel_.receive(member(from), tag, data, bytes, idle);
}

void RankSubset::exchange(int to, const void* sent, int from, void* received, std::size_t bytes, int tag,
                          const Idle& idle) {
    channel_.exchange(member(to), sent, member(from), received, bytes, tag, idle);
}

int RankSubset::sender_of_arrived(int from, int tag) {
    const int sender = channel_.sender_of_arrived(from == any_rank ? any_rank : member(from), tag);
    return sender < 0 ? sender : number(sender);
}

void RankSubset::on_failure(std::function<void(const Failure&)> handler) {
    if (!handler) return channel_.on_failure({});
    channel_.on_failure([this, handler = std::move(handler)](const Failure& failure) {
        handler({number(failure.rank), failure.reason, failure.reported});
    });
}

void RankSubset::announce(int rank, const std::string& reason) { channel_.announce(member(rank), reason); }

void RankSubset::abort(int status) {
    channel_.abort(status);
    std::abort();
}

}  // namespace fablint
