#include "measure/retest.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace fablint {

void SlowestPairs::add(const Cell& cell) {
    if (count_ == 0) return;
    const SlowPair pair{cell.sizes.back().mean, std::min(cell.src, cell.dst), std::max(cell.src, cell.dst)};
    const auto known = std::find_if(pairs_.begin(), pairs_.end(), [&](const SlowPair& other) {
        return other.src == pair.src && other.dst == pair.dst;
    });
    if (known == pairs_.end()) {
        pairs_.push_back(pair);
    } else {
        known->time_s = std::max(known->time_s, pair.time_s);
    }
    std::sort(pairs_.begin(), pairs_.end(), is_slower);
    if (pairs_.size() > count_) pairs_.pop_back();
}

std::string SlowestPairs::collect(RankGroup& rank_group) const {
    const auto* bytes = reinterpret_cast<const char*>(pairs_.data());
    std::vector<SlowPair> all;
    const GatheredTexts texts = rank_group.gather(std::string(bytes, pairs_.size() * sizeof(SlowPair)));
    for (const std::string& text : texts.values()) {
        const std::size_t before = all.size();
        all.resize(before + text.size() / sizeof(SlowPair));
        if (!text.empty()) std::memcpy(&all[before], text.data(), text.size());
    }
    std::sort(all.begin(), all.end(), is_slower);
    std::set<std::pair<int, int>> chosen;
    std::string rounds;
    for (const SlowPair& pair : all) {
        if (chosen.size() == count_) break;
        if (!chosen.insert({pair.src, pair.dst}).second) continue;
        rounds += (rounds.empty() ? "" : ";") + std::to_string(pair.src) + "-" + std::to_string(pair.dst);
    }
    return rank_group.broadcast(rounds);
}

RowOptions retest_row(const RowOptions& row, const std::string& rounds) {
    RowOptions retest = row;
    retest.name = row.name + "-retest";
    retest.retest_of = row.name;
    retest.purpose = "retest";
    retest.pattern = "rounds";
    retest.rounds_file.clear();
    retest.rounds = rounds;
    retest.serial = true;
    retest.repeats = 1;
    retest.reconnect = false;
    retest.retest = 0;
    retest.only_rounds.reset();
    return retest;
}

}  // namespace fablint
