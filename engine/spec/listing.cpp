#include "spec/listing.hpp"

#include "base/json.hpp"
#include "kernels/kernel.hpp"
#include "memories/memory.hpp"
#include "messaging/transport.hpp"
#include "messaging/window.hpp"
#include "patterns/pattern.hpp"
#include "spec/benchmarks.hpp"

namespace fablint {

namespace {

// Name and purpose of every row of a table.
template <typename Table>
Json named(const Table& table) {
    std::vector<Json> rows;
    for (const auto& row : table)
        rows.push_back(JsonObject().add("name", row.name).add("description", row.description).json());
    return Json::list(rows);
}

Json kernel_list() {
    std::vector<Json> rows;
    for (const KernelInfo& kernel : kernels())
        rows.push_back(JsonObject()
                           .add("name", kernel.name)
                           .add("description", kernel.description)
                           .add("quantity", word(kernel.quantity))
                           .add("payload", word(kernel.payload))
                           .add("windowed", kernel.windowed())
                           .add("bidirectional", kernel.bidirectional)
                           .add("requires", capability_names(kernel.required))
                           .add("empty", kernel.takes(0))
                           .add("sizes", kernel.default_sizes)
                           .add("pattern", kernel.default_pattern())
                           .json());
    return Json::list(rows);
}

Json benchmark_list() {
    std::vector<Json> rows;
    for (const Benchmark& benchmark : benchmarks())
        rows.push_back(JsonObject()
                           .add("name", benchmark.name)
                           .add("family", benchmark.family)
                           .add("row", benchmark.row)
                           .add("description", benchmark.description)
                           .json());
    return Json::list(rows);
}

}  // namespace

std::string listing() {
    return JsonObject()
        .add("kernels", kernel_list())
        .add("patterns", named(patterns()))
        .add("transports", named(transports()))
        .add("memories", named(memories()))
        .add("syncs", named(syncs()))
        .add("wins", named(wins()))
        .add("benchmarks", benchmark_list())
        .json()
        .text();
}

}  // namespace fablint
