#include "one_sided_kernel.hpp"

namespace fablint {

namespace {

struct Accumulate {
    static constexpr bool exposes_what_is_sent = false;
    static constexpr bool fetches = false;
    static constexpr std::optional<Content> at_origin = std::nullopt;
    static constexpr std::optional<Content> at_target = Content::sum;
    static void start(const Access& access, int slot) {
        access.remote.accumulate(access.peer, access.payload.offset_of(slot), access.payload.send_slot(slot),
                                 access.bytes);
    }
};

struct GetAccumulate {
    static constexpr bool exposes_what_is_sent = false;
    static constexpr bool fetches = true;
    static constexpr std::optional<Content> at_origin = Content::untouched;
    static constexpr std::optional<Content> at_target = Content::sum;
    static void start(const Access& access, int slot) {
        access.remote.get_accumulate(access.peer, access.payload.offset_of(slot), access.payload.send_slot(slot),
                                     access.payload.receive_slot(access.window + slot), access.bytes);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_accumulate(const RowOptions& row) { return make_one_sided<Accumulate>(row); }

std::unique_ptr<Kernel> make_get_accumulate(const RowOptions& row) { return make_one_sided<GetAccumulate>(row); }

}  // namespace fablint
