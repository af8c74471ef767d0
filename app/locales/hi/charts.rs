//! Hindi: charts.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::charts::Charts;

pub(super) const CHARTS: Charts = Charts {
    metrics: "मेट्रिक",
    over: "क्षैतिज अक्ष",
    by_step: "स्टेप",
    by_time: "समय",
    scale: "लंबवत अक्ष",
    linear: "रैखिक",
    log: "लॉग",
    no_points: "ट्रेनर के पहला स्टेप रिपोर्ट करते ही ग्राफ़ शुरू होंगे।",
    no_points_made: "ट्रेनर ने कोई स्टेप रिपोर्ट नहीं किया।",
    kept_every: Phrase("ट्रेनर ने जितने स्टेप रिपोर्ट किए, उनमें से हर {0} में से एक रखा गया है: वे सर्वर की सीमा से ज़्यादा हैं।"),
    throughput: "प्रति सेकंड स्टेप",
    at_step: Phrase("स्टेप {0}"),
    summary: Phrase("पहला {0}, आख़िरी {1}, न्यूनतम {2}, अधिकतम {3}"),
    numbers: "संख्याएँ",
    step: "स्टेप",
    time: "समय",
    gpu: Phrase("GPU {0}"),
    gpus: "समय के साथ GPU",
    gpus_of_job: "इस जॉब के GPU",
    no_readings: "इस अवधि में इसके GPU की कोई रीडिंग नहीं आई।",
    range: "अवधि",
    hour: "पिछला घंटा",
    day: "पिछला दिन",
    fleet: "GPU का उपयोग",
    all_gpus: "सभी GPU",
    with_job: "जॉब के साथ",
    busy_of: Phrase("{1} में से {0} GPU जॉब के साथ"),
};
