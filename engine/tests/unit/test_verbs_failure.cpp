// The reason for the failure of a queue pair, with completions that a test makes.
#include "verbs/verbs_failure.hpp"

#if __has_include(<infiniband/verbs.h>)

#include <doctest.h>

#include <cstdint>
#include <vector>

using namespace fablint;

namespace {

ibv_wc completion(ibv_wc_status status, std::uint64_t peer = 1) {
    ibv_wc made{};
    made.status = status;
    made.wr_id = peer;
    return made;
}

bool of_peer(const ibv_wc& completion) { return completion.wr_id == 1; }

}  // namespace

TEST_CASE("flushed work is not the reason if the error itself follows") {
    int polls = 0;
    const auto later = [&polls]() -> std::vector<ibv_wc> {
        if (++polls < 3) return {};
        return {completion(IBV_WC_REM_OP_ERR, 2), completion(IBV_WC_SUCCESS), completion(IBV_WC_WR_FLUSH_ERR),
                completion(IBV_WC_RETRY_EXC_ERR)};
    };
    CHECK(failure_of({completion(IBV_WC_WR_FLUSH_ERR)}, of_peer, later, 60.0).status == IBV_WC_RETRY_EXC_ERR);
    CHECK(polls == 3);
}

TEST_CASE("an error that is there is not waited for") {
    const auto never = []() -> std::vector<ibv_wc> {
        FAIL("polled");
        return {};
    };
    const std::vector<ibv_wc> both = {completion(IBV_WC_WR_FLUSH_ERR), completion(IBV_WC_REM_ACCESS_ERR)};
    CHECK(failure_of(both, of_peer, never, 60.0).status == IBV_WC_REM_ACCESS_ERR);
    CHECK(failure_of({both.back()}, of_peer, never, 60.0).status == IBV_WC_REM_ACCESS_ERR);
}

TEST_CASE("without another error the flushed work is reported") {
    const auto nothing = [] { return std::vector<ibv_wc>{}; };
    CHECK(failure_of({completion(IBV_WC_WR_FLUSH_ERR)}, of_peer, nothing, 0.01).status == IBV_WC_WR_FLUSH_ERR);
}

#endif
