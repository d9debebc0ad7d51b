// A text of each of several ranks, each different text once: names of hosts and NICs, sets of CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace fablint {

class GatheredTexts {
  public:
    GatheredTexts() = default;
    void add(const std::string& text);           // of the next rank
    void add_packed(const std::string& packed);  // of the next ranks, as packed() returns them
    std::string packed() const;

    bool empty() const { return codes_.empty(); }
    std::size_t size() const { return codes_.size(); }
    const std::string& operator[](std::size_t rank) const { return values_[static_cast<std::size_t>(codes_[rank])]; }
    const std::vector<std::string>& values() const { return values_; }  // in the order of their first rank
    const std::vector<std::int32_t>& codes() const { return codes_; }   // of each rank, an index into values()

    // The texts of these ranks only.
    GatheredTexts of(const std::vector<int>& ranks) const;

  private:
    std::int32_t code_of(const std::string& text);

    std::vector<std::string> values_;
    std::vector<std::int32_t> codes_;
    std::unordered_map<std::string, std::int32_t> index_;
};

}  // namespace fablint
