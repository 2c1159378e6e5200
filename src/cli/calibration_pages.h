// A calibration as people read it: on a terminal, as a policy file, and as a page for a browser.
#pragma once

#include <cstdint>
#include <string>

#include "store/calibration.h"

namespace belljar {

struct CalibrationTitle {
  std::string profile;
  std::uint64_t since_ms = 0;  // how far back runs were looked at
  std::string made_at;         // the day and time, for files
};

std::string calibration_text(const Calibration& calibration, const CalibrationTitle& title);

// The proposals as `[limits]` of a policy file.
std::string calibration_policy(const Calibration& calibration, const CalibrationTitle& title);

// One page of HTML that loads nothing: styles and plots (SVG) are in it.
std::string calibration_html(const Calibration& calibration, const CalibrationTitle& title);

// What the pages share: one sentence on how well the percentile is known, and those on runs that a limit struck.
std::string certainty_sentence(const LimitCalibration& limit, const Calibration& calibration);
std::vector<std::string> struck_sentences(const LimitCalibration& limit);
// "300 runs of the last 30 d: 298 ended by themselves, 2 at a limit".
std::string runs_sentence(const Calibration& calibration, const CalibrationTitle& title);
std::string replay_sentence(const Calibration& calibration);

}  // namespace belljar
