#include "ranks/gathered_texts.hpp"

#include <cstring>

namespace fablint {

namespace {

void put(std::string& packed, std::uint64_t number) {
    packed.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint64_t take(const std::string& packed, std::size_t& at) {
    std::uint64_t number = 0;
    std::memcpy(&number, packed.data() + at, sizeof number);
    at += sizeof number;
    return number;
}

}  // namespace

std::int32_t GatheredTexts::code_of(const std::string& text) {
    const auto [at, is_new] = index_.emplace(text, static_cast<std::int32_t>(values_.size()));
    if (is_new) values_.push_back(text);
    return at->second;
}

void GatheredTexts::add(const std::string& text) { codes_.push_back(code_of(text)); }

// Numbers of values and of ranks, each value after its length, the codes.
std::string GatheredTexts::packed() const {
    std::string packed;
    put(packed, values_.size());
    put(packed, codes_.size());
    for (const std::string& value : values_) {
        put(packed, value.size());
        packed += value;
    }
    packed.append(reinterpret_cast<const char*>(codes_.data()), codes_.size() * sizeof(std::int32_t));
    return packed;
}

void GatheredTexts::add_packed(const std::string& packed) {
    std::size_t at = 0;
    std::vector<std::int32_t> code_here(take(packed, at));
    const std::size_t ranks = take(packed, at);
    for (std::int32_t& code : code_here) {
        const std::size_t length = take(packed, at);
        code = code_of(packed.substr(at, length));
        at += length;
    }
    const std::size_t before = codes_.size();
    codes_.resize(before + ranks);
    std::memcpy(codes_.data() + before, packed.data() + at, ranks * sizeof(std::int32_t));
    for (std::size_t rank = before; rank < codes_.size(); ++rank)
        codes_[rank] = code_here[static_cast<std::size_t>(codes_[rank])];
}

GatheredTexts GatheredTexts::of(const std::vector<int>& ranks) const {
    GatheredTexts texts;
    for (const int rank : ranks) texts.add((*this)[static_cast<std::size_t>(rank)]);
    return texts;
}

}  // namespace fablint
