#include "one_sided_kernel.hpp"

namespace fablint {

namespace {

struct Get {
    static constexpr bool exposes_what_is_sent = true;
    static constexpr bool fetches = false;
    static constexpr std::optional<Content> at_origin = Content::message;
    static constexpr std::optional<Content> at_target = std::nullopt;
    static void start(const Access& access, int slot) {
        access.remote.get(access.peer, access.payload.offset_of(slot), access.payload.receive_slot(slot), access.bytes);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_get_latency(const RowOptions& row) { return make_one_sided<Get>(row); }

std::unique_ptr<Kernel> make_get_bandwidth(const RowOptions& row) { return make_one_sided<Get>(row); }

}  // namespace fablint
