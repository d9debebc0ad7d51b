// Random input to everything that reads what a user wrote: it is taken or refused, never a crash (the sanitizers
// watch).
#include <doctest.h>

#include <random>
#include <sstream>

#include "base/errors.hpp"
#include "patterns/pattern.hpp"
#include "spec/options.hpp"

using namespace fablint;

namespace {

constexpr int tries = 20'000;

// Text made of pieces that the grammars know, numbers at the edges, and arbitrary bytes.
class Babble {
  public:
    explicit Babble(std::uint64_t seed) : generator_(seed) {}

    std::string text(const std::vector<std::string>& pieces, int most) {
        std::string text;
        for (int i = pick(most); i > 0; --i) {
            switch (pick(6)) {
                case 0:
                    text += static_cast<char>(pick(256));
                    break;
                case 1:
                    text += std::to_string(generator_());
                    break;
                case 2:
                    text += std::to_string(pick(10));
                    break;
                default:
                    text += pieces[static_cast<std::size_t>(pick(static_cast<int>(pieces.size())))];
            }
        }
        return text;
    }

  private:
    int pick(int n) { return static_cast<int>(generator_() % static_cast<std::uint64_t>(n)); }

    std::mt19937_64 generator_;
};

template <typename Parse>
int refusals(const std::vector<std::string>& pieces, int most, Parse parse) {
    Babble babble(42);
    int refused = 0;
    for (int i = 0; i < tries; ++i) {
        const std::string text = babble.text(pieces, most);
        try {
            parse(text);
        } catch (const Error& error) {
            CHECK(error.status() == Exit::usage);
            CHECK(std::string(error.what()).size() > 0);
            ++refused;
        }
    }
    return refused;
}

}  // namespace

TEST_CASE("sizes") {
    const int refused =
        refusals({"8", "1K", ":", ",", "M", "G", "-", "0", " "}, 8, [](const std::string& text) { parse_sizes(text); });
    CHECK(refused > 0);
    CHECK(refused < tries);
}

TEST_CASE("plans") {
    const std::vector<std::string> pieces = {"latency",   "bandwidth", " ",          " ",      " ",
                                             "\n",        "#",         "--sizes",    "--seed", "--samples",
                                             "--pattern", "all-pairs", "--budget",   "0.5",    "--only-rounds",
                                             "0-3,7",     "--",        "--validate", "--name", "-o",
                                             "=",         "--plan",    "--help"};
    const int refused = refusals(pieces, 14, [](const std::string& text) {
        std::vector<RowOptions> rows = parse_plan(text, "fuzz");
        name_rows(rows);
        for (const RowOptions& row : rows) CHECK(parse_plan(row.text(), "again").at(0).text() == row.text());
    });
    CHECK(refused > 0);
    CHECK(refused < tries);
}

TEST_CASE("rounds files") {
    PatternRequest request;
    request.kind = "rounds";
    request.ranks = 10;
    const int refused = refusals({"0-1", "2-3", " ", "\n", "-", ",", "#", "9", "4-"}, 10, [&](const std::string& text) {
        std::istringstream stream(text);
        request.rounds = RoundsReader(stream, "fuzz", request.ranks).next(1000);
        const auto pattern = make_pattern(request);
        for (int rank = 0; rank < request.ranks; ++rank) CHECK(pattern->role(0, rank).partner() < request.ranks);
    });
    CHECK(refused > 0);
    CHECK(refused < tries);
}
