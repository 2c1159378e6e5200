// The form of the database, and how an older one becomes it.
#pragma once

#include <span>
#include <string>

#include "store/database.h"

namespace belljar {

// The scripts, oldest first. How many of them a database has had is its user_version. A script that was released never
// changes; a new form is a new script.
std::span<const char* const> migrations();

// Brings the database to the newest form, whoever else does so at the same time. Refuses one of a newer Belljar.
Result<void> migrate(Database& database, const std::string& file);

}  // namespace belljar
