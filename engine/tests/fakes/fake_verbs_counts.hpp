// What the fake of libibverbs has counted since its load.
#pragma once

#include <cstdint>

struct FakeVerbsCounts {
    std::uint64_t polls, send_calls, receive_calls, signalled_sends;
    std::uint64_t early_messages;  // arrived before their receive was posted
};
