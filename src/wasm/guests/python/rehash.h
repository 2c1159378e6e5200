// New hash seeds for an interpreter that is initialised already. Texts and bytes keep their hash in themselves, and
// dicts and sets place what they hold by it: all of them are found while the interpreter is initialised, and mended
// afterwards.
#pragma once

// Before the interpreter is initialised.
void watch_for_hashes(void);

// Once, after that: from here on nothing new is noted. Ends the process where it finds what reseed() could not mend.
void end_watch(void);

// Call when the seeds have changed, before any Python code runs. What end_watch() found must still be as it was.
void rehash_all(void);
