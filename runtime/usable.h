// Whether something that a machine may lack can be used on this one.
#pragma once

#include <string>

#include "dsl/error.h"

namespace tilewright {

/// Whether `use` meets no UserError; the error's words otherwise, in `why_not` where that is given.
template<typename Use> bool is_usable(Use &&use, std::string *why_not) {
    try {
        use();
        return true;
    } catch (const UserError &error) {
        if (why_not != nullptr) {
            *why_not = error.what();
        }
        return false;
    }
}

}  // namespace tilewright
