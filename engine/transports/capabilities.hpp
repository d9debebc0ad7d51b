// What a transport may offer besides point-to-point messages, and a kernel may require.
#pragma once

#include <string>

namespace fablint {

using Capabilities = unsigned;  // a set of the following

namespace capability {
inline constexpr Capabilities nothing = 0;
inline constexpr Capabilities persistent = 1;
inline constexpr Capabilities thread_lanes = 2;
inline constexpr Capabilities rma = 4;
inline constexpr Capabilities request_queue = 8;
inline constexpr Capabilities collectives = 16;
}  // namespace capability

// "rma, request_queue"; empty for none.
std::string capability_names(Capabilities capabilities);

}  // namespace fablint
