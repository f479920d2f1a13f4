// The families of core operators, each a list of targets with their translations.
#pragma once

#include <map>
#include <string>

#include "lowering/translate/translate.h"

namespace tilewright::translation {

using Table = std::map<std::string, Translation, std::less<>>;

void add_pointwise(Table &table);
void add_constants(Table &table);
void add_views(Table &table);
void add_concatenations(Table &table);
void add_reductions(Table &table);
void add_scans(Table &table);
void add_contractions(Table &table);
void add_convolutions(Table &table);
void add_pools(Table &table);
void add_gathers(Table &table);
void add_scatters(Table &table);
void add_sort(Table &table);

}  // namespace tilewright::translation
