#pragma once

namespace fablint {

inline constexpr const char* engine_version = "0.1.0";

}  // namespace fablint
