//! Hindi: the page of a log.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::logs::Logs;

pub(super) const LOGS: Logs = Logs {
    title: Phrase("{0} का लॉग"),
    open: "लॉग खोलें",
    attempts: "प्रयास",
    search: "लॉग में खोजें",
    search_hint: "खोजें",
    regex: "रेगुलर एक्सप्रेशन",
    case: "छोटे-बड़े अक्षरों का मिलान",
    previous: "पिछला मिलान",
    next: "अगला मिलान",
    matches: count("{0} लाइन में मिला", "{0} लाइनों में मिला"),
    rank: Phrase("{1} में से {0}"),
    so_far: Phrase("अब तक {0} …"),
    none: "किसी लाइन में नहीं मिला",
    errors: "त्रुटियाँ",
    errors_hint: "वे लाइनें खोजें जो बताती हैं कि क्या गड़बड़ हुई",
    line: "इस लाइन पर जाएँ",
    go: "जाएँ",
    first: "पहली लाइनें",
    earlier: "इससे पहले",
    later: "इसके बाद",
    last: "आख़िरी लाइनें",
    shown: Phrase("{2} में से लाइन {0} से {1}"),
    newer: count("{0} नई लाइन", "{0} नई लाइनें"),
    missing: "कुछ लाइनें नहीं मिल सकीं। पेज कोशिश करता रहेगा।",
    copy_link: "लिंक कॉपी करें",
    copy_lines: "लाइनें कॉपी करें",
    omitted: Phrase("इस लाइन का बाक़ी {0} पूरे लॉग में है"),
    gap: Phrase("लॉग का {0} मौजूद नहीं है: वर्कर उसे भेज नहीं सका और रखने की जगह नहीं थी"),
};
