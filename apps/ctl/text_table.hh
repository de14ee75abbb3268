// Columns of text: the first is flush left, the others flush right, as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace tidepool::ctl {

class text_table {
    std::vector<std::vector<std::string>> _rows;

public:
    explicit text_table(std::vector<std::string> header) { _rows.push_back(std::move(header)); }

    void add_row(std::vector<std::string> cells) { _rows.push_back(std::move(cells)); }
    std::string str() const;
};

} // namespace tidepool::ctl
