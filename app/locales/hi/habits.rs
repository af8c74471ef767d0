//! Hindi: search, keys, notifications, preferences.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::habits::{Habits, Preferences};

pub(super) const HABITS: Habits = Habits {
    preferences: "प्राथमिकताएँ",
    search: "खोजें",
    search_hint: "पेज, वर्कर, जॉब या कार्रवाई",
    nothing_found: "यहाँ इस नाम का कुछ नहीं है।",
    palette_hint: "↑ ↓ से चुनें, ↵ से खोलें, Ctrl ↵ से नए टैब में",
    page: "पेज",
    action: "कार्रवाई",
    verb: Phrase("{0} …"),
    choice: Phrase("{0}: {1}"),
    density: "घनत्व",
    comfortable: "खुला",
    compact: "सघन",
    zone: "समय क्षेत्र",
    utc: "UTC",
    local: "स्थानीय समय",
    keys: "एक कुंजी वाले शॉर्टकट",
    keys_on: "चालू",
    keys_off: "बंद",
    shortcuts: "कीबोर्ड शॉर्टकट",
    go_to: Phrase("{0} पर जाएँ"),
    k_palette: "कुछ भी खोजें",
    k_help: "ये शॉर्टकट दिखाएँ",
    k_filter: "पेज पर जो है उसे छाँटें",
    k_next: "अगली पंक्ति",
    k_previous: "पिछली पंक्ति",
    k_open: "पंक्ति खोलें",
    k_select: "पंक्ति चुनें",
    k_create: "बनाएँ या सबमिट करें",
    k_drain: "इस वर्कर को ड्रेन या बहाल करें",
    k_undo: "“वापस लें” पर जाएँ",
    k_menu: "पंक्ति के साथ क्या किया जा सकता है",
    k_close: "बंद करें",
    keys_are_off: "एक कुंजी वाले शॉर्टकट प्राथमिकताओं में बंद हैं।",
    notes: "सूचनाएँ",
    notes_none: "इस टैब में अभी तक कुछ नहीं हुआ है।",
    undo: "वापस लें",
    close: "बंद करें",
};

pub(super) const PREFERENCES: Preferences = Preferences {
    intro: "यह ब्राउज़र अपने पेज कैसे दिखाए। दूसरे ब्राउज़रों की अपनी पसंद होती है।",
    theme_hint: "“सिस्टम के अनुसार” आपके डिवाइस के हल्के और गहरे रूप पर चलता है।",
    density_hint: "सघन एक बार में अधिक पंक्तियाँ दिखाता है।",
    zone_hint: "स्थानीय समय आपके ब्राउज़र का है; स्क्रिप्ट के बिना पेज UTC लिखते हैं।",
    keys_hint: "जैसे जॉब के लिए g j और सूची के लिए ?। बोलकर लिखने पर या कुंजियाँ ग़लती से दबने पर बंद करें; Ctrl K बना रहता है।",
    save: "सहेजें",
    search_intro: "वे पेज, वर्कर, जॉब और कॉन्फ़िगरेशन जो आप देख सकते हैं, और उनके साथ क्या किया जा सकता है।",
};
