#include "output/zarr.hpp"

namespace fablint {

namespace {

Json array_metadata(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& chunk,
                    const std::vector<std::string>& names, const std::string& type, const std::string& fill_json) {
    const Json codec =
        JsonObject().add("name", "bytes").add("configuration", JsonObject().add("endian", "little").json()).json();
    const auto named = [](const char* name, const Json& configuration) {
        return JsonObject().add("name", name).add("configuration", configuration).json();
    };
    return JsonObject()
        .add("zarr_format", 3)
        .add("node_type", "array")
        .add("shape", Json::list(shape))
        .add("data_type", type)
        .add("chunk_grid", named("regular", JsonObject().add("chunk_shape", Json::list(chunk)).json()))
        .add("chunk_key_encoding", named("default", JsonObject().add("separator", ".").json()))
        .add("fill_value", Json::parsed(fill_json))
        .add("codecs", Json::list(std::vector<Json>{codec}))
        .add("attributes", JsonObject().json())
        .add("dimension_names", Json::list(names))
        .json();
}

template <typename T>
void write_vector(const std::filesystem::path& folder, const std::string& name, const std::vector<T>& values,
                  const std::string& type, const std::string& fill_json) {
    const auto length = static_cast<std::int64_t>(values.size());
    make_folder(folder / name);
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    replace_file(folder / name / "c.0", bytes);
    replace_file(folder / name / "zarr.json", array_metadata({length}, {length}, {name}, type, fill_json).text());
}

}  // namespace

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
    std::vector<std::string> names = {"src", matrix ? "dst" : "round"};
    std::vector<std::int64_t> shape = {grid_.rows, grid_.columns};
    std::vector<std::int64_t> chunk = {grid_.rows_per_chunk(), grid_.columns};
    if (matrix) {
        names.insert(names.begin(), "repeat");
        shape.insert(shape.begin(), grid_.planes);
        chunk.insert(chunk.begin(), 1);
    }
    for (const auto& [name, length] : trailing_) {
        names.push_back(name);
        shape.push_back(length);
        chunk.push_back(length);
    }
    make_folder(folder_);
    replace_file(folder_ / "zarr.json", array_metadata(shape, chunk, names, type_, fill_json_).text());
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

void write_coordinate(const std::filesystem::path& folder, const std::string& name,
                      const std::vector<std::int64_t>& values) {
    write_vector(folder, name, values, "int64", "0");
}

void write_coordinate(const std::filesystem::path& folder, const std::string& name, const std::vector<double>& values) {
    write_vector(folder, name, values, "float64", "0.0");
}

std::string group_metadata(const Json& attributes) {
    return JsonObject().add("zarr_format", 3).add("node_type", "group").add("attributes", attributes).json().text();
}

}  // namespace fablint
