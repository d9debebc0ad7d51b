#include "output/zarr.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace fablint {

namespace {

Json named(const char* name, const Json& configuration) {
    return JsonObject().add("name", name).add("configuration", configuration).json();
}

// Texts are `string` arrays of the codec `vlen-utf8`, all others little-endian numbers.
Json codec_of(const std::string& type) {
    if (type == "string") return JsonObject().add("name", "vlen-utf8").json();
    return named("bytes", JsonObject().add("endian", "little").json());
}

template <typename Number>
struct NumberType;
template <>
struct NumberType<std::int32_t> {
    static constexpr const char *name = "int32", *fill = "-1";
};
template <>
struct NumberType<std::int64_t> {
    static constexpr const char *name = "int64", *fill = "0";
};
template <>
struct NumberType<float> {
    static constexpr const char *name = "float32", *fill = "\"NaN\"";
};
template <>
struct NumberType<double> {
    static constexpr const char *name = "float64", *fill = "\"NaN\"";
};

void write_chunk(const std::filesystem::path& folder, const Dimensions& dimensions, const std::string& type,
                 const std::string& fill_json, std::string_view bytes) {
    std::string key = "c";
    std::vector<std::int64_t> chunk;
    for (const auto& [name, length] : dimensions) {
        key += ".0";
        chunk.push_back(length);
    }
    make_folder(folder);
    if (!bytes.empty()) replace_file(folder / key, bytes);
    write_array_metadata(folder, dimensions, chunk, type, fill_json);
}

}  // namespace

void write_array_metadata(const std::filesystem::path& folder, const Dimensions& dimensions,
                          std::vector<std::int64_t> chunk, const std::string& type, const std::string& fill_json) {
    std::vector<std::string> names;
    std::vector<std::int64_t> shape;
    for (const auto& [name, length] : dimensions) {
        names.push_back(name);
        shape.push_back(length);
    }
    for (std::int64_t& length : chunk) length = std::max<std::int64_t>(1, length);
    const Json metadata =
        JsonObject()
            .add("zarr_format", 3)
            .add("node_type", "array")
            .add("shape", Json::list(shape))
            .add("data_type", type)
            .add("chunk_grid", named("regular", JsonObject().add("chunk_shape", Json::list(chunk)).json()))
            .add("chunk_key_encoding", named("default", JsonObject().add("separator", ".").json()))
            .add("fill_value", Json::parsed(fill_json))
            .add("codecs", Json::list(std::vector<Json>{codec_of(type)}))
            .add("attributes", JsonObject().json())
            .add("dimension_names", Json::list(names))
            .json();
    make_folder(folder);
    replace_file(folder / "zarr.json", metadata.text());
}

ZarrArray::ZarrArray(std::filesystem::path folder, const Grid& grid, std::string type, std::string fill_json,
                     std::string fill_bytes, Dimensions trailing)
    : folder_(std::move(folder)),
      grid_(grid),
      type_(std::move(type)),
      fill_json_(std::move(fill_json)),
      fill_bytes_(std::move(fill_bytes)),
      trailing_(std::move(trailing)) {
    for (const auto& [name, length] : trailing_) width_ *= static_cast<std::size_t>(length);
}

void ZarrArray::write_metadata() const {
    const bool matrix = grid_.layout == Layout::matrix;
    Dimensions dimensions = {{"src", grid_.rows}, {matrix ? "dst" : "round", grid_.columns}};
    std::vector<std::int64_t> chunk = {grid_.rows_per_chunk(), grid_.columns};
    if (matrix) {
        dimensions.insert(dimensions.begin(), {"repeat", grid_.planes});
        chunk.insert(chunk.begin(), 1);
    }
    for (const auto& dimension : trailing_) {
        dimensions.push_back(dimension);
        chunk.push_back(dimension.second);
    }
    write_array_metadata(folder_, dimensions, chunk, type_, fill_json_);
}

std::filesystem::path ZarrArray::chunk_of(std::int64_t plane, std::int64_t row) const {
    std::string key = grid_.layout == Layout::matrix ? "c." + std::to_string(plane) : "c";
    key += "." + std::to_string(row / grid_.rows_per_chunk()) + ".0";
    for (std::size_t i = 0; i < trailing_.size(); ++i) key += ".0";
    return folder_ / key;
}

void ZarrArray::write_cell(std::int64_t plane, std::int64_t row, std::int64_t column, const void* data) {
    write_part(plane, row, column, 0, data, cell_bytes());
}

void ZarrArray::write_part(std::int64_t plane, std::int64_t row, std::int64_t column, std::size_t offset,
                           const void* data, std::size_t bytes) {
    const std::int64_t in_chunk = grid_.rows_per_chunk();
    const std::filesystem::path file = chunk_of(plane, row);
    if (!open_ || open_path_ != file) {
        create_filled(file, fill_bytes_, static_cast<std::size_t>(in_chunk * grid_.columns) * width_);
        open_ = std::make_unique<CellFile>(file);
        open_path_ = file;
    }
    const auto cell = static_cast<std::size_t>((row % in_chunk) * grid_.columns + column);
    open_->write(cell * cell_bytes() + offset, data, bytes);
}

template <typename Number>
void write_array(const std::filesystem::path& folder, const Dimensions& dimensions, const std::vector<Number>& values) {
    using Type = NumberType<Number>;
    write_chunk(folder, dimensions, Type::name, Type::fill,
                {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)});
}

template void write_array(const std::filesystem::path&, const Dimensions&, const std::vector<std::int32_t>&);
template void write_array(const std::filesystem::path&, const Dimensions&, const std::vector<std::int64_t>&);
template void write_array(const std::filesystem::path&, const Dimensions&, const std::vector<float>&);
template void write_array(const std::filesystem::path&, const Dimensions&, const std::vector<double>&);

std::string encoded_texts(const std::vector<std::string>& texts) {
    const auto number = [](std::size_t value) {
        const auto word = static_cast<std::uint32_t>(value);
        return std::string(reinterpret_cast<const char*>(&word), sizeof word);
    };
    std::string bytes = number(texts.size());
    for (const std::string& text : texts) {
        const std::string valid = utf8(text);
        bytes += number(valid.size()) + valid;
    }
    return bytes;
}

void write_array(const std::filesystem::path& folder, const std::string& dimension,
                 const std::vector<std::string>& texts) {
    const Dimensions dimensions = {{dimension, static_cast<std::int64_t>(texts.size())}};
    write_chunk(folder, dimensions, "string", "\"\"", texts.empty() ? "" : encoded_texts(texts));
}

std::string group_metadata(const Json& attributes) {
    return JsonObject().add("zarr_format", 3).add("node_type", "group").add("attributes", attributes).json().text();
}

}  // namespace fablint
