#include "osu.hpp"

#include <cmath>
#include <cstdio>

#include "kernel.hpp"

namespace fablint {

namespace {

std::string column(double value) {
    const int decimals = value > 0.0 && value < 1.0 ? 2 - static_cast<int>(std::floor(std::log10(value))) : 2;
    char text[64];
    std::snprintf(text, sizeof text, "%20.*f", decimals, value);
    return text;
}

}  // namespace

std::string osu_table(const RowOptions& row, const std::vector<Cell>& cells, int pairs) {
    const KernelInfo& info = kernel_named(row.kernel);
    const bool latency = info.quantity == Quantity::latency;
    const double directions = info.mutual && !latency ? 2.0 : 1.0;
    const double repeats = static_cast<double>(cells.size()) / pairs;
    std::string text = std::string("# ") + info.osu_title + " (fablint-engine)\n";
    if (pairs > 1 && info.uses != Uses::collectives) text += "# [ pairs: " + std::to_string(pairs) + " ]\n";
    text += latency ? "# Size       Avg Latency(us)\n" : "# Size      Bandwidth (MB/s)\n";
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
        double sum = 0.0;
        for (const Cell& cell : cells) {
            const auto time_s = static_cast<double>(cell.sizes[i].mean);
            sum += latency ? time_s * 1e6 : static_cast<double>(row.sizes[i]) / time_s / 1e6;
        }
        char size[32];
        std::snprintf(size, sizeof size, "%-10zu", row.sizes[i]);
        const double divisor = latency ? static_cast<double>(cells.size()) : repeats;
        text += size + column(directions * sum / divisor) + "\n";
    }
    return text;
}

}  // namespace fablint
