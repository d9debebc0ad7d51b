#include "output/osu.hpp"

#include <cmath>
#include <cstdio>

#include "kernels/kernel.hpp"
#include "ranks/mpi_control.hpp"

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
    const double directions = info.bidirectional && info.runs_on(shape::pairs) && !latency ? 2.0 : 1.0;
    std::string text = std::string("# ") + info.osu_title + " (fablint-engine)\n";
    if (const auto mpi = mpi_library(); mpi && mpi->thread_level != "single")
        text += "# MPI thread level: " + mpi->thread_level + ": figures include the locks of the MPI library\n";
    if (pairs > 1 && !info.sends_messages()) text += "# [ ranks: " + std::to_string(pairs) + " ]\n";
    if (pairs > 1 && info.runs_on(shape::pairs)) text += "# [ pairs: " + std::to_string(pairs) + " ]\n";
    text += latency ? "# Size       Avg Latency(us)\n" : "# Size      Bandwidth (MB/s)\n";
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
        double sum_s = 0.0;
        for (const Cell& cell : cells) sum_s += static_cast<double>(cell.sizes[i].mean);
        const double mean_s = sum_s / static_cast<double>(cells.size());
        const double bytes = directions * pairs * static_cast<double>(row.sizes[i]);
        char size[32];
        std::snprintf(size, sizeof size, "%-10zu", row.sizes[i]);
        text += size + column(latency ? mean_s * 1e6 : bytes / mean_s / 1e6) + "\n";
    }
    return text;
}

}  // namespace fablint
