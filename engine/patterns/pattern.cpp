#include "patterns/pattern.hpp"

#include "base/errors.hpp"
#include "base/table.hpp"

namespace fablint {

const std::vector<PatternInfo>& patterns() {
    using namespace shape;
    static constexpr auto matrix = Layout::matrix;
    static constexpr auto list = Layout::list;
    static constexpr auto leaves = StarSender::leaves;
    static constexpr auto hub = StarSender::hub;
    static const std::vector<PatternInfo> table = {
#define PATTERN(identifier, ...) ROW_OF_TABLE(PatternInfo, make = make_##identifier, __VA_ARGS__),
#include "registry/patterns.inc"
    };
    return table;
}

bool PatternInfo::accepts(const std::string& option) const { return has_word(options, option); }

const PatternInfo& pattern_named(const std::string& name) { return row_named(patterns(), name, "pattern"); }

std::unique_ptr<Pattern> make_pattern(const PatternRequest& request) {
    if (request.ranks < request.fewest_ranks)
        throw usage_error("pattern " + request.kind + " needs at least 2 ranks, this run has " +
                          std::to_string(request.ranks) + ": start it with mpiexec -n 2");
    return pattern_named(request.kind).make(request);
}

}  // namespace fablint
